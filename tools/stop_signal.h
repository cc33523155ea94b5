// SIGUSR1 ends a command's iterations early; what was found so far is written and reported. mpirun passes it on to the
// ranks.
#pragma once

#include <functional>

namespace shardmat::tools {

/// From now on SIGUSR1 is noted. The function returns true after one came to this process.
std::function<bool()> stop_on_signal();

}  // namespace shardmat::tools
