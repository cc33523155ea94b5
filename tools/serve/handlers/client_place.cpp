#include "tools/serve/handlers/client_place.h"

#include <fmt/format.h>

#include "tools/serve/http/names.h"

namespace shardmat::serve {

Problem memory_lost() {
  return make_problem(410, "memory_lost", "the new ranks could not map the memory of this connection; ask for memory again");
}

std::variant<Problem, std::shared_ptr<ClientMemory>> shared_memory(const RequestHead& head) {
  if (!head.connection || !head.connection->memory)
    return make_problem(
        409, "no_shared_memory",
        "this connection shares no memory; POST /v1/memory?bytes=N on the Unix socket comes first. Memory is "
        "shared only with programs on the host of the service; others send vectors in the body");
  if (head.connection->memory->lost) return memory_lost();
  return head.connection->memory;
}

std::optional<Problem> check_place(const char* key, std::uint64_t at, std::uint64_t bytes, std::uint64_t entry,
                                   std::uint64_t memory_bytes) {
  if (at % entry != 0)
    return make_problem(422, "misaligned", fmt::format("{} must be a multiple of {}, the bytes of a value", key, entry));
  if (bytes <= memory_bytes && at <= memory_bytes - bytes) return std::nullopt;
  return make_problem(422, "outside_memory",
                      fmt::format("{} bytes from {}={} on are not inside the {} bytes of this connection's memory", bytes,
                                  key, at, memory_bytes));
}

std::optional<std::uint64_t> parse_place(const std::string& text) {
  const auto bytes = parse_whole(text);
  if (!bytes || *bytes < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*bytes);
}

}  // namespace shardmat::serve
