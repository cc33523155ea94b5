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
  /// Of one column.
  void multiply(const std::string& name, std::optional<MultiplyResult>& result) {
    auto request = std::make_shared<MultiplyRequest>();
    Matrix& matrix = *service_->find(name);
    request->matrix = matrix.id, request->x_bytes = request->y_bytes = 32, request->client = {"a", 1};
    request->x = service_->space().reserve(64);
    request->done = [&result](const MultiplyResult& one) { result = one; };
    EXPECT_EQ(service_->dispatcher().admit(matrix, *request), std::nullopt);
    EXPECT_TRUE(std::holds_alternative<std::uint64_t>(service_->dispatcher().add(matrix, request)));
  }
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

TEST_F(MemoryTest, AProductFreesSolversThenMatricesAndGoesFirst) {
  load("A"), load("B"), load("C");
  bool lacks = true;
  answer_ = [&](const auto& what) -> std::optional<RankAnswer> {
    if (std::holds_alternative<Slice>(what)) return progress(true, 50);
    const auto* product = std::get_if<service::Multiply>(&what);
    if (product == nullptr) return std::nullopt;
    if (product->matrix == service_->find("B")->id && lacks) return no_memory(10);
    return service::Multiplied{};
  };
  run_to_end(ask("A"));
  keeps_back_ = [](const auto& what) { return std::holds_alternative<DropSolvers>(what); };
  std::optional<MultiplyResult> of_b, of_c, again;
  multiply("B", of_b), multiply("C", of_c);
  run_until([&] { return has_kept_back(); });
  EXPECT_EQ(heard<service::Multiply>().size(), 1U);  // that of C waits
  keeps_back_ = [](const auto& what) { return std::holds_alternative<Unload>(what); };
  answer_late();
  run_until([&] { return has_kept_back(); });
  EXPECT_EQ(heard<service::Multiply>().size(), 2U);
  EXPECT_EQ(service_->find("A")->state, MatrixState::unloaded);
  EXPECT_FALSE(service_->dispatcher().is_idle(*service_->find("B")));
  keeps_back_ = nullptr, lacks = false;
  answer_late();
  run_until([&] { return of_b && of_c; });
  EXPECT_FALSE(of_b->problem || of_c->problem);
  EXPECT_EQ(service_->find("C")->state, MatrixState::ready);  // it was not idle
  EXPECT_EQ(heard<DropSolvers>().size(), 1U);

  lacks = true;
  multiply("B", again);
  run_until([&] { return again.has_value(); });
  ASSERT_TRUE(again->problem.has_value());
  EXPECT_EQ(again->problem->code, "no_memory");
  EXPECT_EQ(service_->find("C")->state, MatrixState::unloaded);  // all that could go
}

TEST_F(MemoryTest, AProductThatWaitsForMemoryIsAnsweredWhenItsRanksAreLostOrItsMatrixGoes) {
  answer_ = [&](const auto& what) -> std::optional<RankAnswer> {
    if (std::holds_alternative<service::Multiply>(what)) return no_memory(10);
    return std::nullopt;
  };
  for (const bool loses : {false, true}) {
    const std::string name = loses ? "C" : "B";
    load("A"), load(name);
    keeps_back_ = [](const auto& what) { return std::holds_alternative<Unload>(what); };
    std::optional<MultiplyResult> result;
    multiply(name, result);
    run_until([&] { return has_kept_back(); });
    keeps_back_ = nullptr;
    if (loses) {
      lose_rank();
    } else {
      EXPECT_EQ(service_->unload(name, nullptr), std::nullopt);
      answer_late();
    }
    run_until([&] { return result.has_value(); });
    EXPECT_EQ(result->problem->code, loses ? "rank_lost" : "no_matrix");
  }
}

}  // namespace
}  // namespace shardmat::serve
