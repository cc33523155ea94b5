// Buffers of zeros, without a stream.
//
// Threads: any.
#pragma once

#include <cstddef>

#include "kernels/base/device.h"

namespace shardmat {

/// A new buffer of zeros. They are there: no stream has to wait for them. Throws Error(resources).
Buffer zeros(Device device, std::size_t bytes);

}  // namespace shardmat
