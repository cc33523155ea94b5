// Checks every row of a chunk of a batched product against a plain sequential f64 loop.
#pragma once

#include <span>

#include "kernels/base/types.h"
#include "runtime/batched/batched_chunk.h"
#include "runtime/batched/batched_multiply.h"

namespace shardmat {

/// Y of the chunk must be act(alpha·A·X + bias) within 2·u·(nnzᵢ + 3)·(|alpha|·Σⱼ|aᵢⱼ||xⱼ| + |bias|), with values and X
/// rounded to the type that was multiplied. `bias` is empty or has one entry for each column.
BatchedVerification verify_chunk(const BatchedChunk& chunk, const BatchedOptions& options, std::span<const double> bias);

/// Adds the result for another chunk.
void merge(BatchedVerification& into, const BatchedVerification& more);

}  // namespace shardmat
