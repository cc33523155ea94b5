// How much host memory this process may still take.
#pragma once

#include <cstdint>

namespace shardmat {

/// Bytes the process can still allocate: the smaller of the cgroup's limit minus its use (page cache counted as
/// free) and the machine's. On virtual machines whose memory grows with use, MemTotal is not a limit; there the
/// cgroup's limit is taken if it is larger. Returns INT64_MAX if nothing can be read.
std::int64_t available_host_memory();

/// Tells the next two that `processes` of a job on this host ask alike, so each may have only its share.
void share_host_memory(int processes);

/// This process's share of available_host_memory().
std::int64_t share_of_host_memory();

/// Throws Error(resources) saying what needs `bytes` and how much there is, if it does not fit.
void require_host_memory(std::int64_t bytes, const char* what);

/// Most resident memory this process ever had, in bytes; pages of mapped files included.
std::int64_t peak_host_memory();

}  // namespace shardmat
