// A row of CSR, times its entry of x, added to the columns.
#pragma once

#include <cstdint>

#include "kernels/host/dense_columns.h"
#include "kernels/host/scatter_plan.h"

namespace shardmat {

/// For a row that is read once from memory: a page ahead, where the processor by itself does not look.
template <class T>
SHARDMAT_INLINE void prefetch_row(const T* values, const std::int32_t* columns) {
  __builtin_prefetch(reinterpret_cast<const char*>(values) + 4096);
  __builtin_prefetch(reinterpret_cast<const char*>(columns) + 4096);
}

/// One right-hand side.
template <class Set, class T>
SHARDMAT_INLINE void scatter_row(const T* values, const std::int32_t* columns, std::int64_t count, std::int64_t row,
                                 const Scatter<T>& to) {
  const T of_x = to.alpha * to.x[row];
  T* const y = to.y;
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < count; ++k) add_product<Set>(y[columns[k]], values[k], of_x);
}

/// Several right-hand sides: a group of them at a time, whose x stays in registers.
template <class Set, class T>
SHARDMAT_INLINE void scatter_row(const T* values, const std::int32_t* columns, std::int64_t count, std::int64_t row,
                                 const Scatter<T>& to, std::int64_t right_hand_sides) {
  constexpr int kWidest = static_cast<int>(4 * Set::kBytes / sizeof(T));
  for_each_group<kWidest>(right_hand_sides,
                          [&]<int W>(std::integral_constant<int, W>, std::int64_t first) SHARDMAT_INLINE_LAMBDA {
                            constexpr int kLanes = kLanesOfGroup<Set, T, W>, kPacks = W / kLanes;
                            Lanes<T, kLanes> of_x[kPacks];
                            for (int p = 0; p < kPacks; ++p) of_x[p] = to.template of_x<kLanes>(row, first + p * kLanes);
                            for (std::int64_t k = 0; k < count; ++k)
                              for (int p = 0; p < kPacks; ++p)
                                to.template add<Set, kLanes>(columns[k], first + p * kLanes, values[k], of_x[p]);
                          });
}

}  // namespace shardmat
