// How long slices of a job are, what is kept of its history, and what its request may say.
#include "tools/serve/ranks/rank_job.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/serve/handlers/job_query.h"
#include "tools/serve/ranks/job_run.h"

namespace shardmat::serve {
namespace {

TEST(SliceLength, ComesToItsSecondsAndNeverBelowOnePause) {
  SliceLength length;
  EXPECT_EQ(length.pauses(), 1);
  for (int slice = 0; slice < 10; ++slice) {
    const std::int64_t pauses = length.pauses();
    length.observe(pauses, 1e-4 * static_cast<double>(pauses));
    EXPECT_LE(length.pauses(), 4 * pauses);
  }
  EXPECT_EQ(length.pauses(), 100);
  EXPECT_NEAR(length.expected_seconds(), SliceLength::kSeconds, 1e-12);
  length.observe(100, 100);  // an iteration of a second
  EXPECT_EQ(length.pauses(), 1);
  EXPECT_NEAR(length.expected_seconds(), 1, 1e-12);
  length.observe(0, 1);  // nothing was iterated: nothing is known
  EXPECT_EQ(length.pauses(), 1);
}

TEST(ResidualHistory, KeepsResidualsAtEqualDistancesWhateverTheLength) {
  ResidualHistory history;
  for (std::int64_t i = 1; i <= 100'000; ++i) history.add({i, static_cast<double>(i)});
  const auto& all = history.all();
  ASSERT_GE(all.size(), 128U);
  ASSERT_LE(all.size(), 512U);
  const std::int64_t step = all[1].iteration - all[0].iteration;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].iteration, static_cast<std::int64_t>(i + 1) * step);
    EXPECT_EQ(all[i].norm, static_cast<double>(all[i].iteration));
  }
}

TEST(JobQuery, TellsSettingsFromParameters) {
  const std::vector<std::string> settings{"solver", "rtol"};
  const auto read = [&](const std::map<std::string, std::string>& pairs) {
    return read_job_query(job_kinds().front(), pairs, settings);
  };
  const auto query = std::get<JobQuery>(read(
      {{"method", "cg"}, {"rtol", "1e-3"}, {"k", "3"}, {"wait", "2.5"}, {"limit", "7"}, {"b", "vec-1"}, {"keep", "1"}}));
  EXPECT_EQ(query.settings, "solver=cg rtol=1e-3");
  EXPECT_EQ(query.columns, 3);
  EXPECT_EQ(query.wait_seconds, 2.5);
  EXPECT_EQ(query.limit_seconds, 7);
  EXPECT_EQ(query.b, "vec-1");
  EXPECT_TRUE(query.keeps);
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"walt", "1"}, {"k", "257"}, {"keep", "yes"}, {"rtol", "1 solver=x"}})
    EXPECT_EQ(std::get<Problem>(read({{key, value}})).status, 400) << key;
}

}  // namespace
}  // namespace shardmat::serve
