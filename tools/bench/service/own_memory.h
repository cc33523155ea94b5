// Memory that a connection to the service shares with the ranks.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "tools/bench/service/client.h"

namespace shardmat::tools::service_bench {

/// Owns the mapping. The service's side goes with the connection.
class OwnMemory {
 public:
  /// Throws Error(resources) if the service gives none. REQUIRES: no request is under way.
  OwnMemory(Connection& connection, std::size_t bytes);
  ~OwnMemory();
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// y = A·x of places in the memory, in bytes from its start.
Request own_memory_request(std::string_view matrix, std::size_t x_at, std::size_t y_at);

}  // namespace shardmat::tools::service_bench
