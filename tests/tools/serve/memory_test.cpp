// What the service frees where the ranks lack memory: solvers that no job uses, then matrices.
#include <gtest/gtest.h>

#include "tests/tools/serve/played_rank.h"

namespace shardmat::serve {
namespace {

using service::Begin;
using service::DropSolvers;
using service::Load;
using service::Slice;
using service::Unload;

class MemoryTest : public PlayedRank {
 protected:
  void run_to_end(const std::shared_ptr<RankJob>& job) {
    run_until([&] { return job->ended(); });
  }
};

TEST_F(MemoryTest, ALoadFreesIdleSolversOfAMatrixWithJobsBeforeItUnloadsOthers) {
  load("A"), load("B");
  bool goes_on = true;
  answer_ = [&](const auto& what) -> std::optional<RankAnswer> {
    if (std::holds_alternative<Slice>(what)) return progress(!goes_on, 50);
    if (const auto* one = std::get_if<Load>(&what); one != nullptr && one->source == "C.h5" && heard<DropSolvers>().empty())
      return no_memory(10);
    return std::nullopt;
  };
  const auto job = ask("A");
  run_until([&] { return !service_->find("A")->solver_bytes.empty(); });
  load("C");
  EXPECT_FALSE(load_problem_.has_value());
  EXPECT_EQ(heard<DropSolvers>().size(), 1U);
  EXPECT_TRUE(heard<Unload>().empty());
  EXPECT_EQ(service_->find("B")->state, MatrixState::ready);
  goes_on = false;
  run_to_end(job);
}

TEST_F(MemoryTest, ALoadAsksForSolversOnceAndThenUnloads) {
  load("A"), load("B");
  bool goes_on = true;
  answer_ = [&](const auto& what) -> std::optional<RankAnswer> {
    if (std::holds_alternative<Slice>(what)) return progress(!goes_on, 50);
    if (const auto* one = std::get_if<Load>(&what); one != nullptr && one->source == "C.h5" && heard<Unload>().empty())
      return no_memory(10);
    return std::nullopt;
  };
  const auto job = ask("A");
  run_until([&] { return !service_->find("A")->solver_bytes.empty(); });
  load("C");
  EXPECT_FALSE(load_problem_.has_value());
  EXPECT_EQ(heard<DropSolvers>().size(), 1U);
  EXPECT_EQ(service_->find("B")->state, MatrixState::unloaded);
  goes_on = false;
  run_to_end(job);
}

}  // namespace
}  // namespace shardmat::serve
