// Memory that this process holds, for the bench and for the programs that it compares with.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <fstream>

namespace shardmat::peers {

/// Bytes of resident memory that the process shares with nobody, after freed memory went back to the system.
inline long long resident_bytes() {
  ::malloc_trim(0);
  long long size = 0, resident = 0, shared = 0;  // pages
  std::ifstream("/proc/self/statm") >> size >> resident >> shared;
  return (resident - shared) * ::sysconf(_SC_PAGESIZE);
}

}  // namespace shardmat::peers
