#include "tools/serve/handlers/text_job.h"

#include <fmt/format.h>

#include <utility>

namespace shardmat::serve {
namespace {

class TextJob final : public Job {
 public:
  TextJob(std::uint64_t bytes, TextWork work) : bytes_(bytes), work_(std::move(work)) {}
  std::span<std::byte> body() override { return body_; }
  std::uint64_t rest() const override { return bytes_ - body_.size(); }
  void take_piece(Next next) override {
    body_.resize(bytes_);
    next(std::nullopt);
  }
  void start(std::function<void(Reply)> done) override {
    // The service may answer after the client has left, and with it this job.
    const auto here = [weak = std::weak_ptr(alive_), done = std::move(done)](Reply reply) {
      if (!weak.expired()) done(std::move(reply));
    };
    work_({reinterpret_cast<const char*>(body_.data()), body_.size()}, here);
  }

 private:
  std::uint64_t bytes_;
  std::vector<std::byte> body_;  ///< empty until its first byte has come
  TextWork work_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

Accepted take_text(const Call& call, TextWork work) {
  if (call.head.content_length > kMostTextBytes)
    return problem_reply(413, "too_long", fmt::format("the body has more than {} bytes", kMostTextBytes));
  return std::make_unique<TextJob>(call.head.content_length, std::move(work));
}

}  // namespace shardmat::serve
