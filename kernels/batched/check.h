// Whether the indices of a batch that someone else put on a device stay within its matrices.
#pragma once

#include "kernels/batched/device_batch.h"

namespace shardmat {

/// Reads the whole batch and waits for it. Throws Error(input) naming the first matrix with a wrong row pointer or index,
/// and its row or entry, all counted from 0. Products of such a batch would read and write elsewhere.
void require_valid(const DeviceBatch& batch, Stream& stream);

}  // namespace shardmat
