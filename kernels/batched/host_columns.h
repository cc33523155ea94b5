// How host kernels of batches write a group of columns of Y, whose sums lie in vectors.
#pragma once

#include "kernels/batched/operands.h"
#include "kernels/host/dense_columns.h"

namespace shardmat::batched {

/// Writes columns first … of a row of Y, N columns, from their sums. `plain`: v.plain().
template <class Set, int N, class T, class A, class Pack>
SHARDMAT_INLINE void finish(const Operands<T, A>& v, bool plain, std::int64_t row, std::int64_t first, const Pack& sum) {
  T* y = v.y + row * v.ldy + first;
  if (plain) return store(y, sum);
  Pack out = v.alpha * sum;
  round_product(out);
  if (v.beta != T(0)) add_product<Set>(out, v.beta, load<N>(y));
  if (v.bias != nullptr) out += load<N>(v.bias + first);
  if (v.relu) out = out < T(0) ? Pack{} : out;
  store(y, out);
}

}  // namespace shardmat::batched
