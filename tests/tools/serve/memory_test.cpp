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
  template <class What>
  void load_beside_a_job();
};

/// Loads C while a job on A runs, whose solvers are known. The rank has no memory for C until it has heard a What.
template <class What>
void MemoryTest::load_beside_a_job() {
  load("A"), load("B");
  bool goes_on = true;
  answer_ = [&](const auto& what) -> std::optional<RankAnswer> {
    if (std::holds_alternative<Slice>(what)) return progress(!goes_on, 50);
    if (const auto* one = std::get_if<Load>(&what); one != nullptr && one->source == "C.h5" && heard<What>().empty())
      return no_memory(10);
    return std::nullopt;
  };
  const auto job = ask("A");
  run_until([&] { return !service_->find("A")->solvers.all().empty(); });
  load("C");
  EXPECT_FALSE(load_problem_.has_value());
  EXPECT_EQ(heard<DropSolvers>().size(), 1U);
  goes_on = false;
  run_to_end(job);
}

TEST_F(MemoryTest, ALoadFreesIdleSolversOfAMatrixWithJobsBeforeItUnloadsOthers) {
  load_beside_a_job<DropSolvers>();
  EXPECT_TRUE(heard<Unload>().empty());
  EXPECT_EQ(service_->find("B")->state, MatrixState::ready);
}

TEST_F(MemoryTest, ALoadAsksForSolversOnceAndThenUnloads) {
  load_beside_a_job<Unload>();
  EXPECT_EQ(service_->find("B")->state, MatrixState::unloaded);
}

TEST_F(MemoryTest, AJobBeginsAgainOnceIdleSolversOfOthersAreFreed) {
  load("A"), load("B");
  answer_ = [&](const auto& what) -> std::optional<RankAnswer> {
    if (!std::holds_alternative<Slice>(what)) return std::nullopt;
    const bool of_b = heard<Begin>().size() > 1;
    if (of_b && heard<DropSolvers>().empty()) return no_memory(10);
    return progress(true, 50);
  };
  run_to_end(ask("A"));
  ASSERT_FALSE(service_->find("A")->solvers.all().empty());
  const auto job = ask("B");
  run_to_end(job);
  EXPECT_EQ(job->state(), JobState::done) << job->problem()->text;
  EXPECT_EQ(heard<DropSolvers>().size(), 1U);
  EXPECT_TRUE(heard<Unload>().empty());
}

TEST_F(MemoryTest, AJobUnloadsIdleMatricesAndFailsOnceThereAreNone) {
  load("A"), load("B");
  answer_ = [&](const auto& what) -> std::optional<RankAnswer> {
    if (std::holds_alternative<Begin>(what)) return no_memory(10);
    return std::nullopt;
  };
  const auto job = ask("B");
  run_to_end(job);
  EXPECT_EQ(job->state(), JobState::failed);
  EXPECT_EQ(job->problem()->code, "no_memory");
  EXPECT_EQ(service_->find("A")->state, MatrixState::unloaded);
  EXPECT_EQ(service_->find("B")->state, MatrixState::ready);
  EXPECT_EQ(heard<Begin>().size(), 2U);
}

TEST_F(MemoryTest, NothingIsFreedForAJobThatIsSetUp) {
  load("A"), load("B");
  answer_ = [&](const auto& what) -> std::optional<RankAnswer> {
    if (!std::holds_alternative<Slice>(what)) return std::nullopt;
    if (heard<Slice>().size() == 1) return progress(false, 50);
    return no_memory(10);
  };
  const auto job = ask("B");
  run_to_end(job);
  EXPECT_EQ(job->problem()->code, "no_memory");
  EXPECT_TRUE(heard<DropSolvers>().empty());
  EXPECT_TRUE(heard<Unload>().empty());
}

TEST_F(MemoryTest, ANewVectorFreesSolversThenMatrices) {
  load("A"), load("B");
  answer_ = [&](const auto& what) -> std::optional<RankAnswer> {
    if (std::holds_alternative<Slice>(what)) return progress(true, 50);
    if (!std::holds_alternative<service::MakeVector>(what)) return std::nullopt;
    if (heard<Unload>().empty()) return no_memory(10);
    return service::VectorMade{4, 32, 1, 100};
  };
  run_to_end(ask("A"));
  std::optional<std::optional<Problem>> made;
  service_->add_with_memory("B", {service::MakeVector{99, service_->find("B")->id, false, 4, 1, ValueType::f64},
                                  {},
                                  nullptr,
                                  [&](const auto&, const std::optional<Problem>& problem) { made = problem; }});
  run_until([&] { return made.has_value(); });
  EXPECT_FALSE(made->has_value());
  EXPECT_EQ(heard<DropSolvers>().size(), 1U);
  EXPECT_EQ(service_->find("A")->state, MatrixState::unloaded);
  EXPECT_EQ(heard<service::MakeVector>().size(), 3U);
}

}  // namespace
}  // namespace shardmat::serve
