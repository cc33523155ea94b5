// SIGINT (Ctrl-C), SIGTERM and SIGUSR1 end a command's iterations early; what was found so far is written and reported.
//
// mpirun passes SIGUSR1 on to the ranks at once. After SIGINT or SIGTERM, Open MPI waits odls_base_sigkill_timeout seconds,
// sends SIGTERM to the ranks, waits as long again, and sends SIGKILL. While it waits, it reads no output of the ranks, and a
// rank that writes to a full pipe would wait, too. So iterations are reported by print_news(), which does not.
#pragma once

#include <functional>
#include <string_view>

namespace shardmat::tools {

/// Returns a function that tells whether a signal came to this process. SIGUSR1 counts from now on. SIGINT and SIGTERM count
/// once the function was called for the first time. Before that there is nothing to write, and they end the process at once.
/// A SIGINT also ends the process at once if another signal came more than a second before: `timeout` sends one signal
/// twice, to the process and to its group. Batch systems repeat SIGTERM after longer times; then comes SIGKILL.
std::function<bool()> stop_on_signal();
/// The iterations have begun, although the function was not called yet.
void note_iterations();
/// Prints to standard error, and waits while its pipe is full; after a signal it does not wait, and the text is lost.
void print_news(std::string_view text);

}  // namespace shardmat::tools
