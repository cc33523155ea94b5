#include "tools/serve/request_space.h"

#include <fmt/format.h>

#include "tools/serve/names.h"
#include "tools/serve/value_names.h"

namespace shardmat::serve {
namespace {

/// Seconds after which a request that found the arena full should come again.
constexpr double kArenaRetrySeconds = 0.1;
/// What rounding up the ranges of one request may take.
constexpr std::uint64_t kRounding = 128;

}  // namespace

Problem make_problem(int status, std::string code, std::string text) {
  Problem problem;
  problem.status = status, problem.code = std::move(code), problem.text = std::move(text);
  return problem;
}

std::optional<Problem> check_arena(const Service& service, std::uint64_t bytes, const std::string& what) {
  if (bytes + kRounding <= service.space().bytes()) return std::nullopt;
  return make_problem(413, "arena_too_small",
                      fmt::format("{} {} bytes; the service has {} for all requests", what, bytes, service.space().bytes()));
}

Problem arena_full() {
  Problem problem =
      make_problem(429, "arena_full", "the vectors of other requests fill the memory for requests; try again later");
  problem.retry_after_seconds = kArenaRetrySeconds;
  return problem;
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

std::variant<std::optional<std::uint64_t>, Problem> wanted_generation(const RequestHead& head) {
  const std::string& text = head.field("If-Match");
  if (text.empty() || text == "*") return std::optional<std::uint64_t>();
  if (text.size() > 2 && text.front() == '"' && text.back() == '"')
    if (const auto number = parse_whole(std::string_view(text).substr(1, text.size() - 2)); number && *number >= 0)
      return std::optional(static_cast<std::uint64_t>(*number));
  return make_problem(400, "malformed", "If-Match takes one generation in quotes, as \"12\", or *");
}

std::optional<Problem> check_generation(const Matrix& matrix, const std::optional<std::uint64_t>& wanted) {
  if (!wanted || *wanted == matrix.generation) return std::nullopt;
  return make_problem(412, "generation",
                      fmt::format("{} has generation {}, not {}", matrix.wanted.name, matrix.generation, *wanted));
}

std::pair<std::string, std::string> generation_field(std::uint64_t generation) {
  return {"Shardmat-Generation", std::to_string(generation)};
}

Reply about(Reply reply, const Matrix* matrix) {
  if (matrix != nullptr && (matrix->state == MatrixState::ready || matrix->state == MatrixState::values_lost))
    reply.fields.push_back(generation_field(matrix->generation));
  return reply;
}

}  // namespace shardmat::serve
