#include "tools/stop_signal.h"

#include <atomic>
#include <csignal>

namespace shardmat::tools {
namespace {

std::atomic<bool> asked{false};

}  // namespace

std::function<bool()> stop_on_signal() {
  std::signal(SIGUSR1, [](int) { asked = true; });
  return [] { return asked.load(); };
}

}  // namespace shardmat::tools
