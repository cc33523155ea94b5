#include "tools/cli/peak_memory.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

namespace shardmat::tools {
namespace {

std::int64_t anonymous_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("RssAnon:", 0) == 0) return std::stoll(line.substr(8)) * 1024;
  return 0;
}

}  // namespace

PeakMemory::PeakMemory()
    : sampler_([this] {
        while (!stop_) {
          peak_ = std::max(peak_.load(), anonymous_memory());
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
      }) {}

PeakMemory::~PeakMemory() {
  stop_ = true;
  sampler_.join();
}

}  // namespace shardmat::tools
