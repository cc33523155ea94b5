#include "tools/stop_signal.h"

#include <atomic>
#include <csignal>

#include "partition/atomic_file.h"

namespace shardmat::tools {
namespace {

std::atomic<bool> asked{false}, iterates{false};

void end_or_note(int signal) {
  if (iterates && !asked.exchange(true)) return;
  remove_unfinished_files();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
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

}  // namespace shardmat::tools
