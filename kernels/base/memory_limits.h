// How much host memory this process may still allocate.
#pragma once

#include <cstdint>
#include <string>

namespace shardmat {

/// Bytes that all processes on this host, or in this process's cgroups, can still allocate together: the smaller of the
/// machine's available memory and available_in_cgroups(). On virtual machines whose memory grows with use, MemTotal is no
/// limit: there the cgroups' limit is taken if it is larger. INT64_MAX if nothing can be read. Only tests pass a `root`.
std::int64_t available_on_host(const std::string& root = "");

/// Bytes that this process can still allocate: available_on_host(), or less if `ulimit -v` or `-d` limits the process.
std::int64_t available_host_memory();

/// Sets how many processes of this job share the host; the two functions below divide by it.
void share_host_memory(int processes);

/// This process's share of available_on_host(), or less if its own limits are tighter.
std::int64_t share_of_host_memory();

/// Throws Error(resources) if `bytes` do not fit; the message says that `what` needs them, and how much memory there is.
void require_host_memory(std::int64_t bytes, const char* what);

/// Peak resident memory of this process in bytes, pages of mapped files included.
std::int64_t peak_host_memory();

}  // namespace shardmat
