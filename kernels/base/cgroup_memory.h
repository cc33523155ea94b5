// The memory that the cgroups of this process (versions 1 and 2, at every visible level) still allow.
#pragma once

#include <cstdint>
#include <string>

namespace shardmat {

/// The least of (limit - use) over the process's memory cgroup and its ancestors, in every mounted hierarchy. File pages
/// that the kernel can drop at once do not count as used. INT64_MAX without a limit. Reads ROOT/proc/self/cgroup,
/// ROOT/proc/self/mountinfo and the hierarchies mounted below ROOT. Only tests pass a `root`.
std::int64_t available_in_cgroups(const std::string& root = "");

}  // namespace shardmat
