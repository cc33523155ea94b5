// An arena that one rank makes and other ranks of its host map: of hosts other than the front end's, and of ranks that have
// no front end.
//
// Threads: one thread of each rank.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/communicator.h"
#include "runtime/service/wire/arena.h"

namespace shardmat::service {

/// The arena that rank `maker` of this host makes, on the maker and on all ranks that name it; nothing on a rank that names
/// -1. Its descriptor is closed. Collective; the same error on all ranks: Error(resources).
std::optional<Arena> share_arena(Communicator& communicator, int maker, std::uint64_t bytes);

/// Of rank 0, on all ranks. Collective; the same error on all ranks. Throws Error(usage) if the ranks are not all on one
/// host, Error(resources).
Arena make_shared_arena(Communicator& communicator, std::uint64_t bytes);

}  // namespace shardmat::service
