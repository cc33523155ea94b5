// The memory that the cgroups of this process (versions 1 and 2, at every visible level) still allow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardmat {

/// The least of (limit - use) over the process's memory cgroup and its ancestors, in every mounted hierarchy. File pages
/// that the kernel can drop at once do not count as used. INT64_MAX without a limit. Reads ROOT/proc/self/cgroup,
/// ROOT/proc/self/mountinfo and the hierarchies mounted below ROOT. Only tests pass a `root`.
std::int64_t available_in_cgroups(const std::string& root = "");

struct Cgroup {
  std::string folder;  ///< without `root`
  int version = 2;
  bool own = true;  ///< the process's, else one above it
};
/// The visible cgroups that bound this process for a controller ("memory", "cpu"), from its own upwards.
std::vector<Cgroup> cgroups_of(const std::string& controller, const std::string& root = "");

struct CgroupMemory {
  std::string folder;  ///< empty: one above those that this container sees
  std::int64_t limit_bytes = 0, available_bytes = 0;
  bool own = true;
};
/// Those that limit memory, from the process's own upwards.
std::vector<CgroupMemory> memory_of_cgroups(const std::string& root = "");

}  // namespace shardmat
