#include "tools/serve/handlers/request_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/serve/http/names.h"
#include "tools/serve/words/value_names.h"

namespace shardmat::serve {
namespace {

/// Seconds after which a request that found the arena full should come again.
constexpr double kArenaRetrySeconds = 0.1;
/// What rounding up the ranges of one request may take.
constexpr std::uint64_t kRounding = 128;

/// "1.234" for 1,234 µs. Formatting doubles would be the longest part of a reply's header.
std::string milliseconds(double seconds) {
  const std::string digits = std::to_string(1000 + std::llround(std::max(0.0, seconds) * 1e6) % 1000);
  return std::to_string(std::llround(std::max(0.0, seconds) * 1e6) / 1000) + "." + digits.substr(1);
}

Problem arena_full() {
  return make_problem(429, "arena_full", "the vectors of other requests fill the memory for requests; try again later",
                      kArenaRetrySeconds);
}

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

std::optional<Problem> take_fields(const RequestHead& head, double& deadline_seconds, std::optional<Priority>& priority) {
  if (const std::string& text = head.field("Shardmat-Deadline-Ms"); !text.empty()) {
    const auto milliseconds = parse_number(text);
    if (!milliseconds || *milliseconds <= 0)
      return make_problem(400, "malformed", "Shardmat-Deadline-Ms must be a number above 0");
    deadline_seconds = *milliseconds / 1000;
  }
  auto of_field = wanted_priority(head);
  if (auto* problem = std::get_if<Problem>(&of_field)) return std::move(*problem);
  if (!priority) priority = std::get<0>(of_field);
  return std::nullopt;
}

std::string server_timing(const MultiplyResult& result) {
  return "queue;dur=" + milliseconds(result.queue_seconds) + ", copy-in;dur=" + milliseconds(result.seconds.copy_in) +
         ", product;dur=" + milliseconds(result.seconds.product) + ", copy-out;dur=" + milliseconds(result.seconds.copy_out);
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

std::optional<Problem> check_arena(const Service& service, std::uint64_t bytes, const std::string& what) {
  if (bytes + kRounding <= service.space().bytes()) return std::nullopt;
  return make_problem(413, "arena_too_small",
                      fmt::format("{} {} bytes; the service has {} for all requests", what, bytes, service.space().bytes()));
}

std::optional<Problem> check_token_memory(const Rights& rights, std::uint64_t bytes) {
  if (rights.memory_bytes == 0 || bytes <= rights.memory_bytes) return std::nullopt;
  return make_problem(413, "token_memory",
                      fmt::format("this needs {} bytes; the token {} may hold {} (memory_bytes in the token file)", bytes,
                                  rights.name(), rights.memory_bytes));
}

std::variant<Room, Problem> reserve_room(Service& service, const SharedRights& rights, std::uint64_t bytes) {
  Room room = service.space().reserve(bytes);
  if (!room) return arena_full();
  room->charge.emplace(service.token_memory(), rights, TokenMemory::Kind::requests);
  return room;
}

std::optional<Problem> hold_room(Service& service, Room& room, std::uint64_t all, std::uint64_t bytes,
                                 std::uint64_t arrived) {
  const std::uint64_t before = room->charge->bytes();
  if (!room->charge->raise(bytes))
    return make_problem(
        429, "token_memory",
        "the vectors and requests of this token hold as many bytes as it may have (memory_bytes in the token "
        "file); wait for answers, or delete vectors",
        kArenaRetrySeconds);
  if (room->hold(bytes)) return std::nullopt;
  Room other = service.space().reserve(all);
  if (!other || !other->hold(bytes)) {
    room->charge->correct(before);
    return arena_full();
  }
  std::ranges::copy(service.arena().at(room->offset(), arrived), service.arena().at(other->offset(), arrived).begin());
  other->charge.emplace(std::move(*room->charge));
  room = std::move(other);
  return std::nullopt;
}

std::variant<Room, Problem> take_room(Service& service, const SharedRights& rights, std::uint64_t bytes) {
  auto room = reserve_room(service, rights, bytes);
  if (std::holds_alternative<Room>(room))
    if (auto problem = hold_room(service, std::get<Room>(room), bytes, bytes, 0)) return std::move(*problem);
  return room;
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
