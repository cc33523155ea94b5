// SIGINT (Ctrl-C), SIGTERM and SIGUSR1 end a command's iterations early; what was found so far is written and reported.
//
// mpirun passes SIGUSR1 on to the ranks as it is. For the others, Open MPI waits for odls_base_sigkill_timeout seconds,
// sends SIGTERM to the ranks, waits as long again, and sends SIGKILL. While it waits, it reads no output of the ranks:
// whoever writes to a full pipe then waits, too. So the iterations are told by print_news().
#pragma once

#include <functional>
#include <string_view>

namespace shardmat::tools {

/// From now on SIGUSR1 is noted, and once the function was called, SIGINT and SIGTERM are: before, nothing is there to
/// write, and they end the process at once. The function returns true after a signal came to this process. A further SIGINT
/// or SIGTERM ends the process at once, if it comes a second later or more: `timeout` and batch systems send one signal
/// twice, to the process and to its group.
std::function<bool()> stop_on_signal();
/// The iterations have begun, although the function was not called yet.
void note_iterations();
/// Prints to standard error, and waits while its pipe is full; after a signal it does not wait, and the text is lost.
void print_news(std::string_view text);

}  // namespace shardmat::tools
