#include "tools/serve/request_space.h"

#include <fmt/format.h>

#include "tools/serve/value_names.h"

namespace shardmat::serve {
namespace {

/// Seconds after which a request that found the arena full should come again.
constexpr double kArenaRetrySeconds = 0.1;
/// What rounding up the ranges of one request may take.
constexpr std::uint64_t kRounding = 128;

}  // namespace

std::optional<Problem> check_arena(const Service& service, std::uint64_t bytes, const std::string& what) {
  if (bytes + kRounding <= service.space().bytes()) return std::nullopt;
  return make_problem(413, "arena_too_small",
                      fmt::format("{} {} bytes; the service has {} for all requests", what, bytes, service.space().bytes()));
}

Problem arena_full() {
  return make_problem(429, "arena_full", "the vectors of other requests fill the memory for requests; try again later",
                      kArenaRetrySeconds);
}

std::optional<Problem> check_content_type(const RequestHead& head) {
  const std::string& content = head.field("Content-Type");
  if (content.empty() || content == "application/octet-stream" || content == "application/x-www-form-urlencoded")
    return std::nullopt;
  return make_problem(415, "content_type", "the body is raw numbers: Content-Type: application/octet-stream");
}

std::optional<Problem> check_type(const std::string& named, ValueType type, const std::string& of) {
  if (named.empty() || named == type_name(type)) return std::nullopt;
  return make_problem(422, "wrong_type", fmt::format("{} is of type {}; send numbers of this type", of, type_name(type)));
}

}  // namespace shardmat::serve
