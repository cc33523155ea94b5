// What becomes of a file that a client sends, if the client leaves or loses its rights once all of it has come.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "tools/serve/handlers/upload_job.h"
#include "tools/serve/http/event_loop.h"
#include "tools/serve/state/library_files.h"

namespace shardmat::serve {
namespace {

namespace fs = std::filesystem;

class Upload : public testing::TestWithParam<const char*> {
 protected:
  Upload() { fs::create_directories(folder_); }
  ~Upload() override { fs::remove_all(folder_); }

  /// Sends a file of a few bytes, up to its last one. Its job is about to end.
  void send() {
    const std::string source = GetParam();
    head_.content_length = 5;
    auto accepted = take_file(uploads_, {head_, target_, {}, ""}, source, source, std::nullopt,
                              [this, uploads = uploads_](const Uploaded& file, const std::function<void(Reply)>& done) {
                                completed_ = file.source;
                                done(Reply{});
                              });
    job_ = std::move(std::get<std::unique_ptr<Job>>(accepted));
    std::memcpy(job_->body().data(), "12345", 5);
    job_->start([this](const Reply&) {
      answered_ = true;
      job_.reset();  // as a connection does
      finish();
    });
  }
  /// Carries out what was asked for up to now.
  void finish() {
    uploads_->background.run([] {}, [this] { loop_.stop(); });
  }

  const fs::path folder_ = fs::temp_directory_path() / ("shardmat_upload_" + std::to_string(getpid()));
  const fs::path file_ = folder_ / GetParam();
  const LibraryFiles library_{folder_, "1"};
  EventLoop loop_;
  std::shared_ptr<Uploads> uploads_ = std::make_shared<Uploads>(loop_, library_, 100);
  RequestHead head_;
  Target target_;
  std::unique_ptr<Job> job_;
  std::string completed_;
  bool answered_ = false;
};

TEST_P(Upload, StaysIfItsClientDoes) {
  send();
  loop_.run();
  EXPECT_TRUE(answered_);
  EXPECT_EQ(completed_, GetParam());
  EXPECT_EQ(fs::file_size(file_), 5u);
}

TEST_P(Upload, GoesIfItsClientLeavesBeforeItHasItsName) {
  std::promise<void> go_on;
  uploads_->background.run([&] { go_on.get_future().wait(); }, [] {});
  send();
  job_.reset();
  go_on.set_value();
  finish();
  loop_.run();
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_EQ(completed_, "");
  EXPECT_FALSE(answered_);
}

TEST_P(Upload, GoesIfItsClientLeavesBeforeItIsUsed) {
  send();
  while (!fs::exists(file_)) std::this_thread::yield();  // the event loop does not know of it yet
  job_.reset();
  finish();
  loop_.run();
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_EQ(completed_, "");
  EXPECT_FALSE(answered_);
}

TEST_P(Upload, GoesWithAllThatItKeepsIfTheServiceEndsBefore) {
  send();
  while (!fs::exists(file_)) std::this_thread::yield();
  const std::weak_ptr<Uploads> uploads = uploads_;
  job_.reset(), uploads_.reset();  // the event loop runs no more
  EXPECT_TRUE(uploads.expired());
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_EQ(completed_, "");
}

INSTANTIATE_TEST_SUITE_P(FilesAndArrays, Upload, testing::Values("a.bin", ".shardmat-1/b.csr"));

}  // namespace
}  // namespace shardmat::serve
