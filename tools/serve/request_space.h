// What requests with bodies of numbers have in common: room in the arena, and the type of the numbers.
//
// Threads: the thread of the event loop.
#pragma once

#include <optional>
#include <string>

#include "tools/serve/http_message.h"
#include "tools/serve/problem.h"
#include "tools/serve/service.h"

namespace shardmat::serve {

/// 413 if the arena is too small for `bytes` of numbers even when it is empty, else nothing.
std::optional<Problem> check_arena(const Service& service, std::uint64_t bytes, const std::string& what);
/// The arena is full: 429.
Problem arena_full();

/// 415 unless a body is raw numbers.
std::optional<Problem> check_content_type(const RequestHead& head);
/// 422 if the client named another type than the vectors or values have.
std::optional<Problem> check_type(const std::string& named, ValueType type, const std::string& of);

}  // namespace shardmat::serve
