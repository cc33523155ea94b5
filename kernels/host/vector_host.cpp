#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/base/parallel.h"
#include "kernels/vector_backends.h"

namespace shardmat {
namespace {

void dots(ValueType type, std::int64_t n, const void* x, const void* y, double* partial, double* result, Stream&) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* xs = static_cast<const T*>(x);
    const T* ys = static_cast<const T*>(y);
    parallel_ranges(kDotBlocks, std::max<std::int64_t>(1, (std::int64_t{kDotBlocks} << 14) / std::max<std::int64_t>(n, 1)),
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t b = first; b < last; ++b) {
                        double xy = 0, yy = 0;
                        for (std::int64_t i = n * b / kDotBlocks; i < n * (b + 1) / kDotBlocks; ++i) {
                          const double yi = static_cast<double>(ys[i]);
                          xy += static_cast<double>(xs[i]) * yi;
                          yy += yi * yi;
                        }
                        partial[2 * b] = xy;
                        partial[2 * b + 1] = yy;
                      }
                    });
  });
  result[0] = result[1] = 0;
  for (int b = 0; b < kDotBlocks; ++b) result[0] += partial[2 * b], result[1] += partial[2 * b + 1];
}

void normalise_host(ValueType type, std::int64_t n, const void* y, const double* norm_squared, void* x, Stream&) {
  const double scale = *norm_squared > 0 ? 1 / std::sqrt(*norm_squared) : 0;
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_ranges(n, 1 << 14, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        static_cast<T*>(x)[i] = static_cast<T>(scale * static_cast<double>(static_cast<const T*>(y)[i]));
    });
  });
}

void gather_host(std::size_t entry_bytes, std::int64_t n, const std::int32_t* places, const void* from, void* to, Stream&) {
  const auto entry = [&](auto base, std::int64_t i) { return base + static_cast<std::size_t>(i) * entry_bytes; };
  parallel_ranges(n, 1 << 14, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      std::memcpy(entry(static_cast<char*>(to), i), entry(static_cast<const char*>(from), places[i]), entry_bytes);
  });
}

void copy_rows_host(std::size_t row_bytes, std::int64_t n, const void* from, std::size_t from_apart, void* to,
                    std::size_t to_apart, Stream&) {
  parallel_ranges(n, 1 << 14, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      std::memcpy(static_cast<char*>(to) + static_cast<std::size_t>(i) * to_apart,
                  static_cast<const char*>(from) + static_cast<std::size_t>(i) * from_apart, row_bytes);
  });
}

}  // namespace

const VectorBackend host_vector_backend{dots, normalise_host, gather_host, copy_rows_host};

}  // namespace shardmat
