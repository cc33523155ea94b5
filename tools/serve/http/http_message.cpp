#include "tools/serve/http/http_message.h"

#include <strings.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace shardmat::serve {
namespace {

constexpr std::size_t kMostStreamBytes = 256 << 10;  ///< that wait for a slow client

}  // namespace

void TextStream::push(std::string_view text) {
  if (!open_) return;
  if (text_.size() + text.size() > kMostStreamBytes) return close();
  text_ += text;
  wake();
}

void TextStream::close() {
  open_ = false;
  wake();
}

void TextStream::wake() {
  if (on_more) std::exchange(on_more, nullptr)();
}

const std::string& RequestHead::field(std::string_view name) const {
  static const std::string none;
  for (const auto& [key, value] : fields)
    if (key.size() == name.size() && strncasecmp(key.data(), name.data(), name.size()) == 0) return value;
  return none;
}

Reply problem_reply(Problem problem) {
  Reply reply;
  reply.status = problem.status;
  reply.problem = std::move(problem);
  return reply;
}

Reply problem_reply(int status, std::string code, std::string text) {
  Problem problem;
  problem.status = status, problem.code = std::move(code), problem.text = std::move(text);
  return problem_reply(std::move(problem));
}

void finish_problem(Reply& reply, const std::string& request_id) {
  if (!reply.problem) return;
  const Problem& problem = *reply.problem;
  nlohmann::ordered_json json{{"error", problem.text}, {"code", problem.code}, {"request_id", request_id}};
  if (problem.rank >= 0) json["rank"] = problem.rank;
  if (problem.retry_after_seconds > 0) {
    json["retry_after_ms"] = std::llround(std::ceil(problem.retry_after_seconds * 1000));
    reply.fields.emplace_back("Retry-After", std::to_string(std::llround(std::ceil(problem.retry_after_seconds))));
  }
  reply.text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace shardmat::serve
