// Numbers of a request that lie in the memory which its connection shares with the ranks.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "tools/serve/http/http_message.h"
#include "tools/serve/state/client_memories.h"
#include "tools/serve/words/problem.h"

namespace shardmat::serve {

Problem memory_lost();
/// That of the request's connection. 409 if it has none, 410 if new ranks could not map it.
std::variant<Problem, std::shared_ptr<ClientMemory>> shared_memory(const RequestHead& head);
/// 422 unless values of `entry` bytes lie there, `bytes` in all, inside a memory of so many. `key`: the parameter.
std::optional<Problem> check_place(const char* key, std::uint64_t at, std::uint64_t bytes, std::uint64_t entry,
                                   std::uint64_t memory_bytes);
/// What such a parameter says; nothing if it is no place.
std::optional<std::uint64_t> parse_place(const std::string& text);

}  // namespace shardmat::serve
