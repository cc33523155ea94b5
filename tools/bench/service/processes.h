// What the kernel says about processes: children, processor time, memory, descriptors.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardmat::tools::service_bench {

/// The process and all that descend from it.
std::vector<pid_t> family_of(pid_t process);
/// The words of its command line; empty if it has ended.
std::vector<std::string> words_of(pid_t process);

struct Usage {
  double cpu_seconds = 0;         ///< of all threads that live
  std::int64_t own_bytes = 0;     ///< anonymous memory
  std::int64_t shared_bytes = 0;  ///< of shared mappings, counted in every process that has them
  std::int64_t descriptors = 0;
  std::int64_t shm_bytes = 0;  ///< mapped files of /dev/shm
};

Usage usage_of(pid_t process);

/// Seconds in which the processors of this machine worked, for anybody, since it started.
double machine_busy_seconds();
/// The same of this process and of its children that have ended.
double own_busy_seconds();
/// True if the processor says that it is a virtual machine's.
bool is_virtual_machine();
/// Load averages of 1, 5 and 15 minutes, as the kernel writes them.
std::string load_averages();

}  // namespace shardmat::tools::service_bench
