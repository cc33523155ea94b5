// Checks that the indices of a batch that the caller put on a device are within its matrices.
#pragma once

#include "kernels/batched/device_batch.h"

namespace shardmat {

/// Reads the whole batch and waits for the result. Throws Error(input), which names the first matrix with a wrong row
/// pointer or index, and its row or entry, all counted from 0. Products of such a batch would access memory out of bounds.
void require_valid(const DeviceBatch& batch, Stream& stream);

}  // namespace shardmat
