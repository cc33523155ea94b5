// What a command says when its threads had no core for much of the time.
#pragma once

#include <string>

namespace shardmat::tools {

/// A line for standard error; empty if the cores were free, for a single thread, and for less than a second of work.
/// `share`: CoreWait::share() of the `threads` of `rank`, which worked for `seconds`.
std::string busy_note(double share, double seconds, int threads, const std::string& rank);

}  // namespace shardmat::tools
