// SIGINT (Ctrl-C), SIGTERM and SIGUSR1 end a command's iterations early; what was found so far is written and reported. mpirun
// passes SIGUSR1 on to the ranks as it is; for the others it sends SIGTERM, and soon SIGKILL (odls_base_sigkill_timeout).
#pragma once

#include <functional>

namespace shardmat::tools {

/// From now on SIGUSR1 is noted, and once the function was called, SIGINT and SIGTERM are: before, nothing is there to write, and
/// they end the process at once. The function returns true after a signal came to this process. A second SIGINT or SIGTERM
/// ends the process at once.
std::function<bool()> stop_on_signal();
/// The iterations have begun, although the function was not called yet.
void note_iterations();

}  // namespace shardmat::tools
