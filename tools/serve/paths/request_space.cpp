#include "tools/serve/paths/request_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/serve/paths/value_names.h"

namespace shardmat::serve {
namespace {

/// Seconds after which a request that found the arena full should come again.
constexpr double kArenaRetrySeconds = 0.1;
/// What rounding up the ranges of one request may take.
constexpr std::uint64_t kRounding = 128;

}  // namespace

std::variant<const Matrix*, Problem> usable_matrix(const Service& service, const std::string& name) {
  if (auto problem = service.why_not_running()) return std::move(*problem);
  const Matrix* matrix = service.find(name);
  if (matrix == nullptr) return make_problem(404, "no_matrix", fmt::format("there is no matrix {}", name));
  switch (matrix->state) {
    case MatrixState::ready:
      break;
    case MatrixState::loading:
      return make_problem(409, "loading", fmt::format("{} is being loaded", name));
    case MatrixState::failed:
      return make_problem(409, "failed", fmt::format("{} could not be loaded: {}", name, matrix->reason));
    case MatrixState::unloaded:
      return make_problem(409, "unloaded", fmt::format("{} was {}; load it again", name, matrix->reason));
    case MatrixState::values_lost:
      return make_problem(
          410, "values_lost",
          fmt::format("the new values of {} were lost when the ranks were started again; put them again", name));
  }
  return matrix;
}

std::variant<std::optional<Priority>, Problem> wanted_priority(const RequestHead& head) {
  const std::string& text = head.field("Shardmat-Priority");
  const auto priority = parse_priority(text);
  if (!text.empty() && !priority) return make_problem(400, "malformed", "Shardmat-Priority must be high, normal or low");
  return priority;
}

std::optional<Problem> set_client(MultiplyRequest& request, const Rights& rights, std::optional<Priority> wanted) {
  if (wanted && *wanted < rights.highest)
    return make_problem(403, "priority",
                        fmt::format("the token {} may ask for priority {}, not {}", rights.name(),
                                    priority_name(rights.highest), priority_name(*wanted)));
  request.client = {rights.name(), rights.weight};
  request.priority = wanted.value_or(std::max(Priority::normal, rights.highest));
  return std::nullopt;
}

std::optional<Problem> check_vector_rights(const Rights& rights, const Vector& vector) {
  if (vector.matrix.empty() || rights.may_use(vector.matrix)) return std::nullopt;
  return make_problem(403, "wrong_matrix",
                      fmt::format("the token {} is not for the matrix {}, for which {} was made", rights.name(),
                                  vector.matrix, vector.id()));
}

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
