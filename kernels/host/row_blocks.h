// Products of formats that are stored column by column (ELL, DIA …). They go by blocks of rows: the sums of a block stay in
// cache while the block's part of each stored column is read.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/base/parallel.h"
#include "kernels/typed_plan.h"

namespace shardmat {

/// add(begin, end, sums) adds A·x of rows begin … end - 1 to sums[0 …], which are 0 at first; several threads call it. Row i
/// of the format is row original[i] of y, or row i if `original` is null. The result does not depend on the threads.
template <class T, class Add>
void multiply_row_blocks(std::int64_t rows, const Operands<T>& v, const std::int32_t* original, const Add& add) {
  constexpr std::int64_t kBlock = 512;
  parallel_tasks((rows + kBlock - 1) / kBlock, [&](std::int64_t block) {
    const std::int64_t begin = block * kBlock, end = std::min(rows, begin + kBlock);
    T sums[kBlock] = {};
    add(begin, end, sums);
    for (std::int64_t i = begin; i < end; ++i) v.put(original == nullptr ? i : original[i], sums[i - begin]);
  });
}

}  // namespace shardmat
