#include <algorithm>
#include <cstddef>

#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/column_packing_backends.h"
#include "kernels/host/lanes.h"

namespace shardmat {
namespace {

/// Entries that are worth a thread of their own.
constexpr std::int64_t kGrain = 1 << 14;

std::int64_t rows_a_thread(std::int64_t width) { return std::max<std::int64_t>(1, kGrain / width); }

/// y = alpha·sum + beta·y, rounded as a kernel of the set does. With alpha = 0 the sum is not used.
template <class Set, class T>
SHARDMAT_INLINE void put_scaled(T& y, T alpha, T sum, T beta) {
  put<Set>(y, alpha == T(0) ? T(0) : alpha * sum, beta);
}

/// Kernels of GPUs fuse, whatever set the host has.
struct Gpu {
  static constexpr bool kFused = true;
};

template <class Set, class T>
SHARDMAT_INLINE void unpack_rows(std::int64_t begin, std::int64_t end, const T* sums, std::int64_t width,
                                 const std::int64_t* places, std::span<const UnpackedColumn> columns) {
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const UnpackedColumn& column = columns[j];
    T* const y = static_cast<T*>(column.y);
    if (y == nullptr) continue;
    const T alpha = static_cast<T>(column.alpha), beta = static_cast<T>(column.beta);
    const T* const from = sums + j;
    for (std::int64_t i = begin; i < end; ++i)
      put_scaled<Set>(y[places != nullptr ? places[i] : i], alpha, from[i * width], beta);
  }
}

/// Rows that are unpacked column by column while they stay in the cache.
constexpr std::int64_t kRowsAtATime = 256;

}  // namespace

void pack_columns_host(ValueType type, std::int64_t n, std::span<const void* const> vectors, void* to, std::int64_t width) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_ranges(n, rows_a_thread(width), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t begin = first; begin < last; begin += kRowsAtATime)
        for (std::size_t j = 0; j < vectors.size(); ++j) {
          const T* const from = static_cast<const T*>(vectors[j]);
          if (from == nullptr) continue;
          T* const column = static_cast<T*>(to) + j;
          for (std::int64_t i = begin; i < std::min(last, begin + kRowsAtATime); ++i) column[i * width] = from[i];
        }
    });
  });
}

void unpack_columns_host(ValueType type, std::int64_t n, const void* sums, std::int64_t width, const std::int64_t* places,
                         std::span<const UnpackedColumn> columns, Backend backend) {
  const Isa isa = instruction_set();
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = static_cast<const T*>(sums);
    parallel_ranges(n, rows_a_thread(width), [&](std::int64_t first, std::int64_t last) {
      run_compiled_for(isa, [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
        for (std::int64_t begin = first; begin < last; begin += kRowsAtATime) {
          const std::int64_t end = std::min(last, begin + kRowsAtATime);
          if (backend == Backend::host) unpack_rows<Set>(begin, end, from, width, places, columns);
          else unpack_rows<Gpu>(begin, end, from, width, places, columns);
        }
      });
    });
  });
}

}  // namespace shardmat
