// What the memory cgroups of this process leave it: of both versions, at every level that can be seen.
#pragma once

#include <cstdint>
#include <string>

namespace shardmat {

/// Bytes until the tightest limit among the process's memory cgroup and those above it, up to the root of each mounted
/// hierarchy: limit minus use, where file pages that the kernel can drop at once do not count as used. INT64_MAX without a
/// limit. Reads ROOT/proc/self/cgroup, ROOT/proc/self/mountinfo and the hierarchies mounted below ROOT; `root` is empty but
/// in tests.
std::int64_t available_in_cgroups(const std::string& root = "");

}  // namespace shardmat
