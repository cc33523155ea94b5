#include "kernels/base/memory_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <string>

#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

std::atomic<int> sharers{1};  // processes of this job on this host

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

/// The first number of a file, or kUnknown ("max", missing).
std::int64_t number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : kUnknown;
}

/// The number after `key` in a file of "key value" lines, in units of `unit` bytes, or kUnknown.
std::int64_t keyed_number_in(const char* path, const std::string& key, std::int64_t unit) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key, 0) == 0) return std::stoll(line.substr(key.size())) * unit;
  return kUnknown;
}

std::int64_t available_in_cgroup() {
  struct Files {
    const char *limit, *used, *statistics;
  };
  for (const Files& f : {Files{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"},
                         Files{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                               "/sys/fs/cgroup/memory/memory.stat"}}) {
    const std::int64_t limit = number_in(f.limit), used = number_in(f.used);
    if (limit == kUnknown || used == kUnknown || limit > (std::int64_t{1} << 60)) continue;
    const std::int64_t cache = keyed_number_in(f.statistics, "inactive_file ", 1);
    return std::max<std::int64_t>(0, limit - used + (cache == kUnknown ? 0 : cache));
  }
  return kUnknown;
}

}  // namespace

std::int64_t available_host_memory() {
  const std::int64_t machine = keyed_number_in("/proc/meminfo", "MemAvailable:", 1024);
  const std::int64_t cgroup = available_in_cgroup();
  // A cgroup limit above the memory shown is the sign of a virtual machine whose memory grows with use.
  const std::int64_t total = keyed_number_in("/proc/meminfo", "MemTotal:", 1024);
  if (cgroup != kUnknown && total != kUnknown && cgroup > total) return cgroup;
  return std::min(machine, cgroup);
}

void share_host_memory(int processes) { sharers = std::max(1, processes); }

std::int64_t share_of_host_memory() { return available_host_memory() / sharers; }

void require_host_memory(std::int64_t bytes, const char* what) {
  const std::int64_t available = share_of_host_memory();
  if (bytes > available)
    throw Error(ErrorKind::resources,
                fmt::format("{} needs {} of host memory but only {} is available; use a machine with more, more ranks on "
                            "more hosts, or a smaller matrix",
                            what, human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(available))));
}

std::int64_t peak_host_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

}  // namespace shardmat
