// A disk that does not answer holds nobody up but those who wait for it.
#include "tools/serve/state/saved_matrices.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/tools/serve/played_rank.h"

namespace shardmat::serve {
namespace {

/// While it lives, the file that is written before it takes the place of the list is a pipe, which waits for a reader.
class StuckDisk {
 public:
  explicit StuckDisk(const std::filesystem::path& directory) : pipe_(directory / ".matrices.json.tmp") {
    EXPECT_EQ(mkfifo(pipe_.c_str(), 0600), 0);
  }
  ~StuckDisk() { let_go(); }
  /// Reads what is written; the pipe then fails, and the next attempt has a file.
  void let_go() {
    if (is_free_) return;
    is_free_ = true;
    const int reader = open(pipe_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    std::error_code gone;
    while (std::filesystem::exists(pipe_, gone)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    close(reader);
  }

 private:
  std::filesystem::path pipe_;
  bool is_free_ = false;
};

class SavedMatricesTest : public PlayedRank {
 protected:
  void begin_load(const std::string& name) {
    WantedMatrix wanted;
    wanted.name = name, wanted.source = name + ".h5";
    EXPECT_EQ(service_->load(wanted, [this, name](const std::optional<Problem>& problem) { loaded_[name] = problem; }),
              std::nullopt);
  }
  std::vector<std::string> on_disk() const {
    std::vector<std::string> names;
    for (const WantedMatrix& one : state_->read_matrices()) names.push_back(one.name);
    return names;
  }

  std::map<std::string, std::optional<Problem>> loaded_;
};

TEST_F(SavedMatricesTest, ADiskThatDoesNotAnswerHoldsUpLoadsAlone) {
  begin_load("A");
  run_until([&] { return loaded_.contains("A"); });
  EXPECT_EQ(on_disk(), (std::vector<std::string>{"A"}));  // whoever was answered finds it again
  StuckDisk disk(state_->path());
  begin_load("B"), begin_load("C");
  run_until([&] { return heard<service::Load>().size() == 3; });
  const auto job = ask("A", "eigen");
  run_until([&] { return job->ended(); });  // others are served
  EXPECT_EQ(loaded_.size(), 1U);
  EXPECT_EQ(service_->find("B")->state, MatrixState::loading);
  EXPECT_EQ(service_->find("A")->state, MatrixState::ready);
  disk.let_go();
  run_until([&] { return loaded_.size() == 3; });
  EXPECT_EQ(service_->find("C")->state, MatrixState::ready);
  run_until([&] { return service_->is_saved("B") && service_->is_saved("C"); });
  EXPECT_EQ(on_disk(), (std::vector<std::string>{"A", "B", "C"}));
}

TEST_F(SavedMatricesTest, ALoadThatIsWrittenWhenARankIsLostIsLoadedAgain) {
  begin_load("A");
  run_until([&] { return loaded_.contains("A"); });
  StuckDisk disk(state_->path());
  begin_load("B");
  run_until([&] { return heard<service::Load>().size() == 2; });
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    disk.let_go();
  });
  lose_rank();
  later.join();
  run_until([&] { return loaded_.contains("B"); });
  EXPECT_EQ(loaded_["B"]->code, "rank_lost");
  EXPECT_EQ(service_->find("B")->state, MatrixState::ready);
  run_until([&] { return service_->is_saved("B"); });
  EXPECT_EQ(service_->unload("A", [this](const auto& problem) { loaded_["A"] = problem; }), std::nullopt);
  loaded_.erase("A");
  run_until([&] { return loaded_.contains("A"); });
  EXPECT_EQ(on_disk(), (std::vector<std::string>{"B"}));
}

TEST_F(SavedMatricesTest, WhatMustBeWrittenAtOnceIsNotReplacedByAnOlderList) {
  std::vector<WantedMatrix> wanted(1);
  wanted[0].name = "old";
  SavedMatrices saved(loop_, *state_, [&] { return wanted; });
  bool tried = false;
  saved.save();
  wanted[0].name = "new";
  saved.save_now();
  saved.when_tried([&] { tried = true; });
  run_until([&] { return tried; });
  EXPECT_EQ(on_disk(), (std::vector<std::string>{"new"}));
  EXPECT_NE(saved.find("new"), nullptr);
  EXPECT_EQ(saved.find("old"), nullptr);
}

}  // namespace
}  // namespace shardmat::serve
