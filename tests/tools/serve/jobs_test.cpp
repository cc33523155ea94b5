// What becomes of jobs whose ranks, matrices or memory go.
#include "tools/serve/ranks/jobs.h"

#include <gtest/gtest.h>

#include "tests/tools/serve/played_rank.h"

namespace shardmat::serve {
namespace {

using service::Begin;
using service::Slice;

class JobsTest : public PlayedRank {
 protected:
  void run_to_end(const std::shared_ptr<RankJob>& job) {
    run_until([&] { return job->ended(); });
  }
};

TEST_F(JobsTest, ALateJobWhoseRankIsLostEndsWithItsLimit) {
  load("A");
  keeps_back_ = [](const auto& what) { return std::holds_alternative<Slice>(what); };
  const auto job = ask("A", "eigen", [](RankJob& one) { one.limit_seconds = 0.05; });
  run_until([&] { return job->is_late() && has_kept_back(); });
  lose_rank();
  run_to_end(job);
  EXPECT_EQ(job->state(), JobState::failed);
  EXPECT_EQ(job->problem()->code, "time_limit");
  EXPECT_EQ(heard<Begin>().size(), 1U);
}

}  // namespace
}  // namespace shardmat::serve
