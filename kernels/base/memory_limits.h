// How much host memory this process may still take.
#pragma once

#include <cstdint>
#include <string>

namespace shardmat {

/// Bytes that the processes of this host, or of this process's cgroups, can still allocate: the smaller of what the machine
/// has available and what the cgroups leave (available_in_cgroups()). On virtual machines whose memory grows with use,
/// MemTotal is not a limit; there the cgroups' limit is taken if it is larger. INT64_MAX if nothing can be read. `root` is
/// empty but in tests.
std::int64_t available_on_host(const std::string& root = "");

/// Bytes that this process can still allocate: available_on_host(), or less by the process's own limits (`ulimit -v`, `-d`).
std::int64_t available_host_memory();

/// Tells the next two that `processes` of a job on this host ask alike, so each may have only its share.
void share_host_memory(int processes);

/// This process's share of available_on_host(), or less by the process's own limits.
std::int64_t share_of_host_memory();

/// Throws Error(resources) saying what needs `bytes` and how much there is, if it does not fit.
void require_host_memory(std::int64_t bytes, const char* what);

/// Most resident memory this process ever had, in bytes; pages of mapped files included.
std::int64_t peak_host_memory();

}  // namespace shardmat
