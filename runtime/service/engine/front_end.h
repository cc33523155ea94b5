// How a rank of the service reaches its front end: through a socket of the file system on the front end's host, through the
// network from other hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "runtime/service/wire/arena.h"
#include "runtime/service/wire/command.h"

namespace shardmat::service {

struct FrontEnd {
  int socket = -1;             ///< the caller closes it
  std::string home;            ///< name of the front end's host; the same on all ranks
  std::optional<Arena> arena;  ///< on that host
  std::uint64_t arena_bytes = 0;
};

/// Connects each rank and sends its Hello. Its host is that of the lowest rank that finds the socket `path`; this one brings
/// the others where the front end listens for them, with a secret. Nothing listens if all ranks are on one host. Collective;
/// the same error on all ranks: Error(resources) if nobody listens at `path`, or a rank of another host finds no way. If the
/// front end is gone, the process ends.
FrontEnd reach_front_end(const std::string& path, Communicator& ranks, Hello hello);

/// The front end is gone, or does not want this rank any more: ends the process.
[[noreturn]] void leave_front_end();

}  // namespace shardmat::service
