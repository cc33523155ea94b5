// How the ranks of a test lie on hosts.
#pragma once

#include "tests/support/world.h"

namespace shardmat {

/// There are several hosts, one of them with several ranks.
inline bool hosts_are_shared() { return world().hosts() > 1 && world().hosts() < world().size(); }

}  // namespace shardmat
