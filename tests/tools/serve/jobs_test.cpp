// What becomes of jobs whose ranks, matrices or memory go.
#include "tools/serve/ranks/jobs.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/tools/serve/played_rank.h"
#include "tools/serve/observe/metrics.h"

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

TEST_F(JobsTest, AnIterateStaysWholeWhileTheNextOneIsWritten) {
  load("A");
  const auto keeps = [](const auto& what) {
    const auto* slice = std::get_if<Slice>(&what);
    return slice != nullptr && slice->keeps;
  };
  answer_ = [](const auto& what) -> std::optional<RankAnswer> {
    if (std::holds_alternative<Slice>(what)) return progress(false);
    return std::nullopt;
  };
  const auto job = ask("A", "solve", [&](RankJob& one) {
    one.keeps_iterates = true;
    one.x = service_->space().reserve(one.bytes());
    one.x->hold(one.bytes());
  });
  const std::uint64_t first = job->x->offset();
  run_until([&] { return job->has_guess; });
  EXPECT_EQ(job->x->offset(), first);
  keeps_back_ = keeps;
  run_until([&] { return has_kept_back(); });  // the rank writes the second one
  const std::uint64_t second = heard<Slice>().back().x.at(0);
  EXPECT_NE(second, first);
  EXPECT_TRUE(job->has_guess);
  lose_rank();
  run_until([&] { return heard<Begin>().size() == 2; });
  EXPECT_TRUE(heard<Begin>().back().has_guess);
  EXPECT_EQ(heard<Begin>().back().parts.at(0).guess.offset, first);
  keeps_back_ = nullptr;
  run_until([&] { return job->x->offset() != first; });  // both places are used in turns
  run_until([&] { return job->x->offset() == first; });
  job->cancel();
  run_to_end(job);
  run_until([&] { return service_->space().used() == 0; });
}

TEST_F(JobsTest, AJobWhoseMemoryIsLostFailsByItselfAndMergesWithNoOther) {
  load("A");
  std::vector<std::shared_ptr<ClientMemory>> memories;
  for (int i = 0; i < 2; ++i) service_->share_memory(4096, [&](auto made) { memories.push_back(std::get<1>(made)); });
  run_until([&] { return memories.size() == 2; });
  const auto ask_with_b = [&](const std::shared_ptr<ClientMemory>& memory) {
    return ask("A", "solve", [&](RankJob& one) {
      one.has_b = true, one.alone = false, one.always_merges = true;
      one.memory = memory, one.b_at = 0;
    });
  };
  keeps_back_ = [](const auto& what) { return std::holds_alternative<Slice>(what); };
  const auto first = ask_with_b(memories[0]);
  run_until([&] { return has_kept_back(); });
  const auto good = ask_with_b(memories[0]), lost = ask_with_b(memories[1]);
  memories[1]->lost = true;  // as if new ranks could not map it
  keeps_back_ = nullptr;
  answer_late();
  run_to_end(good), run_to_end(lost);
  EXPECT_EQ(good->state(), JobState::done);
  EXPECT_EQ(lost->state(), JobState::failed);
  EXPECT_EQ(lost->problem()->code, "memory_lost");
  for (const Begin& begin : heard<Begin>())
    for (const service::JobPart& part : begin.parts) EXPECT_NE(part.b.memory, memories[1]->number());
}

TEST_F(JobsTest, AJobEndsWhenItsMassMatrixIsUnloadedWhileItsSliceWaits) {
  load("K"), load("M");
  answer_ = [](const auto& what) -> std::optional<RankAnswer> {
    if (std::holds_alternative<Slice>(what)) return progress(false);
    return std::nullopt;
  };
  const auto job = ask("K", "eigen", [](RankJob& one) { one.mass = "M"; });
  run_until([&] { return !heard<Slice>().empty(); });
  keeps_back_ = [](const auto& what) { return std::holds_alternative<service::Load>(what); };
  WantedMatrix other;
  other.name = "other", other.source = "other.h5";
  ASSERT_FALSE(service_->load(other, nullptr).has_value());
  run_until([&] { return has_kept_back(); });
  const std::size_t slices = heard<Slice>().size();
  ASSERT_FALSE(service_->unload("M", nullptr).has_value());
  keeps_back_ = nullptr;
  answer_late();
  run_to_end(job);
  EXPECT_EQ(job->state(), JobState::failed);
  EXPECT_EQ(job->problem()->code, "no_matrix");
  EXPECT_EQ(job->problem()->text, "M was unloaded");
  EXPECT_EQ(heard<Slice>().size(), slices);
}

TEST_F(JobsTest, RequestsWhoseBodiesStillArriveCountAmongThoseThatMayWait) {
  const auto rights = std::make_shared<Rights>("a", std::vector<Scope>{}, std::vector<std::string>{});
  const auto other = std::make_shared<Rights>("b", std::vector<Scope>{}, std::vector<std::string>{});
  std::vector<std::shared_ptr<RankJob>> arriving;
  for (int i = 0; i < 64; ++i) arriving.push_back(std::get<1>(jobs_->make(rights)));
  ASSERT_TRUE(std::holds_alternative<Problem>(jobs_->make(rights)));
  EXPECT_EQ(std::get<Problem>(jobs_->make(rights)).code, "too_many_jobs");
  EXPECT_FALSE(std::holds_alternative<Problem>(jobs_->make(other)));
  arriving.pop_back();
  EXPECT_FALSE(std::holds_alternative<Problem>(jobs_->make(rights)));
}

TEST_F(JobsTest, TheQueueOfATokenHasBatchesReplacedMatricesAndJobsThatHaveNotBegun) {
  load("A");
  const auto of_a = [](RankJob& one) { one.client = {"a", 1}; };
  keeps_back_ = [](const auto& what) { return std::holds_alternative<Slice>(what); };
  const auto first = ask("A", "eigen", of_a);
  run_until([&] { return has_kept_back(); });
  const auto second = ask("A", "eigen", of_a);  // waits for the solver
  const double never = std::numeric_limits<double>::infinity();
  RequestQueue& batches = service_->dispatcher().batches(ValueType::f64, 1, true).queue;
  batches.add({1'000'001, 1, 0, never, false, {"a", 1}});
  auto replaced = std::make_unique<Matrix>();
  replaced->id = 1'000, replaced->queue.add({1'000'002, 1, 0, never, false, {"a", 1}});
  Matrix& of_before = *replaced;
  service_->dispatcher().retire(std::move(replaced));
  const std::string text = Metrics(*service_).text(Rights::of_owner(""));
  EXPECT_NE(text.find("shardmat_token_queue_depth{token=\"a\"} 3\n"), std::string::npos) << text;
  batches.clear(), of_before.queue.clear();
  keeps_back_ = nullptr;
  answer_late();
  run_to_end(first), run_to_end(second);
}

TEST_F(JobsTest, WorkThatHasNotBegunIsRefusedByAnotherCodeThanWorkThatIsCutOff) {
  load("A");
  keeps_back_ = [](const auto& what) { return std::holds_alternative<service::MakeVector>(what); };
  std::optional<Problem> cut_off, refused;
  service_->dispatcher().add({service::MakeVector{99, 0, false, 4, 1, ValueType::f64},
                              {},
                              nullptr,
                              [&](const auto&, const std::optional<Problem>& problem) {
                                cut_off = problem;
                                refused = service_->why_no_new_work();
                              }});
  run_until([&] { return has_kept_back(); });
  lose_rank();
  ASSERT_TRUE(cut_off && refused);
  EXPECT_EQ(cut_off->code, "rank_lost");
  EXPECT_EQ(refused->code, "restarting");
  EXPECT_GT(refused->retry_after_seconds, 0);
}

TEST_F(JobsTest, NewRanksGetWhatIsKeptOfXAndTheRestIsLost) {
  load("A");
  const auto solve = [&](RankJob& one) {
    one.x = service_->space().reserve(one.bytes());
    one.x->hold(one.bytes());
  };
  const auto solved = ask("A", "solve", solve);
  run_to_end(solved);
  const std::uint64_t at = heard<Slice>().back().x.at(0);
  const auto eigen = ask("A", "eigen");
  run_to_end(eigen);
  run_until([&] { return eigen->kept_x != nullptr; });
  EXPECT_EQ(heard<service::ReadVector>().back().offset, eigen->kept_x->offset());
  EXPECT_EQ(service_->space().used(), 0U);
  lose_rank();
  ASSERT_EQ(heard<service::MakeVector>().size(), 2U);
  const auto made = heard<service::MakeVector>().front();
  EXPECT_EQ(made.vector, solved->result.number);
  EXPECT_EQ(made.matrix, service_->find("A")->id);
  EXPECT_TRUE(made.as_y && !made.has_product);
  ASSERT_EQ(heard<service::WriteVector>().size(), 2U);
  EXPECT_EQ(heard<service::WriteVector>().front(), (service::WriteVector{solved->result.number, at}));
  for (const auto& job : {solved, eigen}) EXPECT_FALSE(service_->vectors().all().at(job->result.number).lost);
  answer_ = [](const auto& what) -> std::optional<RankAnswer> {  // a new rank that has less memory
    if (std::holds_alternative<service::MakeVector>(what)) return no_memory(32);
    return std::nullopt;
  };
  lose_rank();
  EXPECT_TRUE(service_->vectors().all().at(solved->result.number).lost);
  answer_ = nullptr;
  lose_rank();  // it is still kept
  EXPECT_FALSE(service_->vectors().all().at(solved->result.number).lost);
  EXPECT_EQ(service_->unload("A", nullptr), std::nullopt);
  lose_rank();
  EXPECT_EQ(heard<service::MakeVector>().back().matrix, 0U);
  EXPECT_EQ(heard<service::MakeVector>().back().size, 4);
  EXPECT_FALSE(service_->vectors().all().at(solved->result.number).lost);
  {
    const auto first = service_->space().reserve(service_->space().bytes() - 128);
    EXPECT_NE(solved->kept_x, nullptr);
    const auto second = service_->space().reserve(64);  // the one that ended first goes
  }
  EXPECT_EQ(solved->kept_x, nullptr);
  EXPECT_NE(eigen->kept_x, nullptr);
  lose_rank();
  EXPECT_TRUE(service_->vectors().all().at(solved->result.number).lost);
  EXPECT_FALSE(service_->vectors().all().at(eigen->result.number).lost);
}

TEST_F(JobsTest, TheEndOfTheServiceEndsJobsThatNoRequestWaitsFor) {
  load("A");
  keeps_back_ = [](const auto& what) { return std::holds_alternative<Slice>(what); };
  const auto running = ask("A", "eigen");
  run_until([&] { return has_kept_back(); });
  const auto queued = ask("A", "eigen"), awaited = ask("A", "eigen", [](RankJob&one) { one.waiting = 1; });
  service_->leave();
  ASSERT_TRUE(service_->why_no_new_jobs().has_value());
  EXPECT_EQ(service_->why_no_new_jobs()->code, "draining");
  EXPECT_FALSE(service_->why_no_new_work().has_value());
  service_->drain();
  jobs_->end_unattended();
  for (const auto& job : {running, queued}) {
    EXPECT_EQ(job->state(), JobState::failed);
    EXPECT_EQ(job->problem()->code, "draining");
  }
  keeps_back_ = nullptr;
  answer_late();
  run_to_end(awaited);
  EXPECT_EQ(awaited->state(), JobState::done);
  EXPECT_EQ(heard<Begin>().size(), 2U);  // not the queued one
}

}  // namespace
}  // namespace shardmat::serve
