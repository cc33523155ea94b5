// An arena for ranks that have no front end: one rank makes it, and all ranks map it.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "runtime/service/wire/arena.h"

namespace shardmat::service {

/// Collective; the same error on all ranks. Throws Error(usage) if the ranks are not all on one host, Error(resources).
Arena make_shared_arena(Communicator& communicator, std::uint64_t bytes);

}  // namespace shardmat::service
