#include "kernels/base/memory_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <string>

#include "kernels/base/cgroup_memory.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

std::atomic<int> sharers{1};  // processes of this job on this host

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

/// The number after `key` in a file of "key value" lines, in units of 1024 bytes, or kUnknown.
std::int64_t kilobytes_in(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key, 0) == 0) return std::stoll(line.substr(key.size())) * 1024;
  return kUnknown;
}

/// What `ulimit -v` and `ulimit -d` leave this process, whatever other processes take.
std::int64_t available_to_process() {
  struct Limit {
    decltype(RLIMIT_AS) resource;
    const char* used;
  };
  std::int64_t least = kUnknown;
  for (const Limit& l : {Limit{RLIMIT_AS, "VmSize:"}, Limit{RLIMIT_DATA, "VmData:"}}) {
    rlimit limit{};
    if (getrlimit(l.resource, &limit) != 0 || limit.rlim_cur > static_cast<rlim_t>(kUnknown)) continue;
    const std::int64_t used = kilobytes_in("/proc/self/status", l.used);
    const auto most = static_cast<std::int64_t>(limit.rlim_cur);
    if (used != kUnknown) least = std::min(least, std::max<std::int64_t>(0, most - used));
  }
  return least;
}

}  // namespace

std::int64_t available_on_host(const std::string& root) {
  const std::int64_t machine = kilobytes_in(root + "/proc/meminfo", "MemAvailable:");
  const std::int64_t cgroups = available_in_cgroups(root);
  // A cgroup limit above the memory shown is the sign of a virtual machine whose memory grows with use.
  const std::int64_t total = kilobytes_in(root + "/proc/meminfo", "MemTotal:");
  if (cgroups != kUnknown && total != kUnknown && cgroups > total) return cgroups;
  return std::min(machine, cgroups);
}

std::int64_t available_host_memory() { return std::min(available_on_host(), available_to_process()); }

void share_host_memory(int processes) { sharers = std::max(1, processes); }

std::int64_t share_of_host_memory() { return std::min(available_on_host() / sharers, available_to_process()); }

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
