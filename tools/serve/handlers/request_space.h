// What requests with bodies of numbers have in common: room in the arena, and the type of the numbers.
//
// Threads: the thread of the event loop.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "tools/serve/http/http_message.h"
#include "tools/serve/ranks/service.h"
#include "tools/serve/words/problem.h"

namespace shardmat::serve {

/// The matrix, if it can be multiplied now; otherwise why not.
std::variant<const Matrix*, Problem> usable_matrix(const Service& service, const std::string& name);

/// What the field Shardmat-Priority says, if it is there; or 400.
std::variant<std::optional<Priority>, Problem> wanted_priority(const RequestHead& head);
/// The header fields of a product: Shardmat-Deadline-Ms, and Shardmat-Priority unless the query names one. Or 400.
std::optional<Problem> take_fields(const RequestHead& head, double& deadline_seconds, std::optional<Priority>& priority);
/// The field Server-Timing of a product's answer.
std::string server_timing(const MultiplyResult& result);
/// Sets whose request it is, and its priority: `wanted`, or normal, or the highest that the client may have. 403 if it wants
/// a higher one.
std::optional<Problem> set_client(MultiplyRequest& request, const Rights& rights, std::optional<Priority> wanted);

/// 413 if the arena is too small for `bytes` of numbers even when it is empty, else nothing.
std::optional<Problem> check_arena(const Service& service, std::uint64_t bytes, const std::string& what);

using Room = std::unique_ptr<ArenaSpace::Lease>;
using SharedRights = std::shared_ptr<const Rights>;
/// 413 if the token may never hold so many bytes.
std::optional<Problem> check_token_memory(const Rights& rights, std::uint64_t bytes);
/// Reserves room of which nothing is held yet; 429 if the arena is full.
std::variant<Room, Problem> reserve_room(Service& service, const SharedRights& rights, std::uint64_t bytes);
/// Holds the first `bytes` of a room that was reserved for `all`. The first `arrived` bytes move along if it has to be
/// elsewhere. 429 if the arena is full, or the token holds too much.
std::optional<Problem> hold_room(Service& service, Room& room, std::uint64_t all, std::uint64_t bytes,
                                 std::uint64_t arrived);
/// Room that is held at once.
std::variant<Room, Problem> take_room(Service& service, const SharedRights& rights, std::uint64_t bytes);

/// 415 unless a body is raw numbers.
std::optional<Problem> check_content_type(const RequestHead& head);
/// 422 if the client named another type than the vectors or values have.
std::optional<Problem> check_type(const std::string& named, ValueType type, const std::string& of);

}  // namespace shardmat::serve
