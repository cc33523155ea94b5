#include "tools/cli/stop_signal.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include "partition/files/atomic_file.h"

namespace shardmat::tools {
namespace {

constexpr std::int64_t kOneSignal = 1'000'000'000;  ///< ns after which a signal is not the first one sent twice

std::atomic<bool> asked{false}, iterates{false};
std::atomic<std::int64_t> first_signal{0};  ///< ns; when SIGINT or SIGTERM was noted
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void end_or_note(int signal) {
  std::int64_t none = 0;
  if (iterates &&
      (first_signal.compare_exchange_strong(none, now()) || signal == SIGTERM || now() - first_signal < kOneSignal)) {
    asked = true;
    return;
  }
  remove_unfinished_files();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// Waits until standard error takes a piece without blocking; false if it does not, and a signal came.
bool has_room() {
  constexpr int kLookMilliseconds = 100;  // a signal may come between the look at `asked` and the wait
  for (;;) {
    pollfd stream{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&stream, 1, asked ? 0 : kLookMilliseconds) > 0) return true;  // errors, too: writing meets them
    if (asked) return false;
  }
}

}  // namespace

void note_iterations() { iterates = true; }

std::function<bool()> stop_on_signal() {
  std::signal(SIGUSR1, [](int) { asked = true; });
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction present {};
    if (sigaction(signal, nullptr, &present) == 0 && present.sa_handler != SIG_IGN) std::signal(signal, end_or_note);
  }
  return [] {
    note_iterations();
    return asked.load();
  };
}

void print_news(std::string_view text) {
  for (; !text.empty() && has_room(); text.remove_prefix(std::min<std::size_t>(text.size(), PIPE_BUF)))
    std::fwrite(text.data(), 1, std::min<std::size_t>(text.size(), PIPE_BUF), stderr);
}

}  // namespace shardmat::tools
