// The L1 cache of a GPU's multiprocessors, for models of it.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"

namespace shardmat {

struct L1Cache {
  std::int64_t bytes = 256 << 10;  ///< of a multiprocessor whose kernels take no shared memory
  int multiprocessors = 132;
  int resident_threads = 2048;  ///< that a multiprocessor can hold
};

/// Of a GPU. Throws Error(internal) for the host.
L1Cache l1_cache(Device device);

}  // namespace shardmat
