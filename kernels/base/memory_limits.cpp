#include "kernels/base/memory_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "kernels/base/cgroup_memory.h"
#include "kernels/base/kept_arrays.h"
#include "kernels/base/memory_error.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

std::atomic<int> sharers{1};  // processes of this job on this host

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

/// The numbers after `keys` in a file of "key value kB" lines, in bytes, or kUnknown.
template <std::size_t n>
std::array<std::int64_t, n> kilobytes_in(const std::string& path, const std::array<const char*, n>& keys) {
  std::array<std::int64_t, n> bytes;
  bytes.fill(kUnknown);
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    for (std::size_t i = 0; i < n; ++i)
      if (line.rfind(keys[i], 0) == 0) bytes[i] = std::stoll(line.substr(std::strlen(keys[i]))) * 1024;
  return bytes;
}

/// What `ulimit -v` and `ulimit -d` leave this process, whatever other processes take.
std::int64_t available_to_process() {
  rlimit all{}, data{};
  if (getrlimit(RLIMIT_AS, &all) != 0 || getrlimit(RLIMIT_DATA, &data) != 0) return kUnknown;
  if (all.rlim_cur == RLIM_INFINITY && data.rlim_cur == RLIM_INFINITY) return kUnknown;
  const auto used = kilobytes_in<2>("/proc/self/status", {"VmSize:", "VmData:"});
  const auto left = [](rlim_t limit, std::int64_t used_bytes) {
    if (limit > static_cast<rlim_t>(kUnknown) || used_bytes == kUnknown) return kUnknown;
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(limit) - used_bytes);
  };
  return std::min(left(all.rlim_cur, used[0]), left(data.rlim_cur, used[1]));
}

}  // namespace

std::int64_t available_on_host(const std::string& root) {
  const auto [machine, total] = kilobytes_in<2>(root + "/proc/meminfo", {"MemAvailable:", "MemTotal:"});
  const std::int64_t cgroups = available_in_cgroups(root);
  // A cgroup limit above the memory shown is the sign of a virtual machine whose memory grows with use.
  if (cgroups != kUnknown && total != kUnknown && cgroups > total) return cgroups;
  return std::min(machine, cgroups);
}

std::int64_t available_host_memory() { return std::min(available_on_host(), available_to_process()); }

void share_host_memory(int processes) { sharers = std::max(1, processes); }

std::int64_t share_of_host_memory() { return std::min(available_on_host() / sharers, available_to_process()); }

void require_host_memory(std::int64_t bytes, const char* what) {
  std::int64_t available = share_of_host_memory();
  if (bytes > available) free_kept_arrays(), available = share_of_host_memory();
  if (bytes > available)
    throw MemoryError(
        fmt::format("{} needs {} of host memory but only {} is available; use a machine with more, more "
                    "ranks on more hosts, or a smaller matrix",
                    what, human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(available))),
        bytes - available);
}

std::int64_t peak_host_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

}  // namespace shardmat
