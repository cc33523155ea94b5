#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "kernels/base/parallel.h"
#include "kernels/host/lanes.h"
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

void fill_host(ValueType type, std::int64_t n, double value, void* x, Stream&) {
  dispatch_operands(type, [&](auto tag, auto) {
    using T = typename decltype(tag)::type;
    parallel_ranges(n, 1 << 14, [&](std::int64_t first, std::int64_t last) {
      std::fill(static_cast<T*>(x) + first, static_cast<T*>(x) + last, static_cast<T>(value));
    });
  });
}

/// The sum of x[i]·y[i]: of the same bits on each instruction set that fuses products and sums.
template <class Set, class T>
SHARDMAT_INLINE double dot_of(const T* x, const T* y, std::int64_t n) {
  constexpr int kLanes = 8;
  using Sums = Lanes<double, kLanes>;
  Sums sums{};
  const std::int64_t whole = n - n % kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes)
    add_product<Set>(sums, __builtin_convertvector(load<kLanes>(x + i), Sums),
                     __builtin_convertvector(load<kLanes>(y + i), Sums));
  double sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  for (std::int64_t i = whole; i < n; ++i) add_product<Set>(sum, static_cast<double>(x[i]), static_cast<double>(y[i]));
  return sum;
}

void column_dots_host(ValueType type, std::int64_t n, std::int64_t columns, const void* x, const void* y, double* partial,
                      double* result, Stream&) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* xs = static_cast<const T*>(x);
    const T* ys = static_cast<const T*>(y);
    const std::int64_t blocks_at_least = (std::int64_t{kDotBlocks} << 14) / std::max<std::int64_t>(n * columns, 1);
    parallel_ranges(kDotBlocks, std::max<std::int64_t>(1, blocks_at_least), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t b = first; b < last; ++b) {
        double* sums = partial + b * columns;
        if (columns == 1) {
          const std::int64_t begin = n * b / kDotBlocks, count = n * (b + 1) / kDotBlocks - begin;
          run_compiled_for(best_isa(), [&]<class Set>(Set)
                                           SHARDMAT_INLINE_LAMBDA { *sums = dot_of<Set>(xs + begin, ys + begin, count); });
          continue;
        }
        std::fill(sums, sums + columns, 0.0);
        for (std::int64_t i = n * b / kDotBlocks; i < n * (b + 1) / kDotBlocks; ++i)
          for (std::int64_t j = 0; j < columns; ++j)
            sums[j] += static_cast<double>(xs[i * columns + j]) * static_cast<double>(ys[i * columns + j]);
      }
    });
  });
  std::fill(result, result + columns, 0.0);
  for (int b = 0; b < kDotBlocks; ++b)
    for (std::int64_t j = 0; j < columns; ++j) result[j] += partial[b * columns + j];
}

void combine_host(ValueType type, std::int64_t n, std::int64_t columns, Factor a, const void* x, Factor b, void* y,
                  Stream&) {
  const auto factor = [](const Factor& f, std::int64_t j) {
    return f.per_column != nullptr ? f.value * f.per_column[j] : f.value;
  };
  const bool reads_y = b.per_column != nullptr || b.value != 0;
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* xs = static_cast<const T*>(x);
    T* ys = static_cast<T*>(y);
    parallel_ranges(n, 1 << 14, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const T fa = static_cast<T>(factor(a, j)), fb = static_cast<T>(factor(b, j));
        for (std::int64_t at = first * columns + j; at < last * columns; at += columns) {
          const T of_x = xs != nullptr ? fa * xs[at] : T(0);
          ys[at] = reads_y ? of_x + fb * ys[at] : of_x;
        }
      }
    });
  });
}

void square_roots_host(std::int64_t n, double* values, Stream&) {
  for (std::int64_t i = 0; i < n; ++i) values[i] = std::sqrt(values[i]);
}

Magnitudes magnitudes_host(ValueType type, std::int64_t n, const void* x, Stream&) {
  Magnitudes found{std::numeric_limits<double>::infinity(), 0};
  std::mutex mutex;
  dispatch(type, [&](auto tag) {
    const auto* const entries = static_cast<const typename decltype(tag)::type*>(x);
    parallel_ranges(n, 1 << 14, [&](std::int64_t first, std::int64_t last) {
      Magnitudes mine{std::numeric_limits<double>::infinity(), 0};
      for (std::int64_t i = first; i < last; ++i) {
        const double magnitude = std::abs(static_cast<double>(entries[i]));
        if (magnitude < mine.least) mine.least = magnitude;
        if (magnitude > mine.largest) mine.largest = magnitude;
      }
      const std::lock_guard lock(mutex);
      found = {std::min(found.least, mine.least), std::max(found.largest, mine.largest)};
    });
  });
  return found;
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

void add_entries_host(ValueType type, std::int64_t n, std::int64_t columns, const std::int32_t* places, const void* from,
                      void* to, DenseStrides to_strides, Stream&) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_ranges(n, grain_of(n, n * columns), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        T* const entry = static_cast<T*>(to) + (places != nullptr ? places[i] : i) * to_strides.row;
        for (std::int64_t j = 0; j < columns; ++j)
          entry[j * to_strides.column] += static_cast<const T*>(from)[i * columns + j];
      }
    });
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

/// Between K lines that lie apart and entries with one of each: vectors move, which a loop over any number of lines does not
/// become. `apart`: from one line to the next.
template <int K, bool kGathers, class T>
void interleave(const T* from, T* to, std::int64_t apart, std::int64_t entries) {
  parallel_ranges(entries, (1 << 14) / K, [&, isa = instruction_set()](std::int64_t begin, std::int64_t end) {
    run_compiled_for(isa, [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
#pragma GCC ivdep
      for (std::int64_t i = begin; i < end; ++i)
#pragma GCC unroll 4
        for (int k = 0; k < K; ++k) {
          if constexpr (kGathers) to[i * K + k] = from[k * apart + i];
          else to[k * apart + i] = from[i * K + k];
        }
    });
  });
}

/// True if it was one of the cases that vectors can do.
template <class T>
bool interleave_few(const Transposition& t) {
  const auto* const from = static_cast<const T*>(t.from);
  auto* const to = static_cast<T*>(t.to);
  const auto with_lines = [&]<int K>(std::integral_constant<int, K>) {
    if (t.columns == K && t.to_apart == K) interleave<K, true>(from, to, t.from_apart, t.rows);
    else if (t.rows == K && t.from_apart == K) interleave<K, false>(from, to, t.to_apart, t.columns);
    else return false;
    return true;
  };
  return with_lines(std::integral_constant<int, 2>()) || with_lines(std::integral_constant<int, 3>()) ||
         with_lines(std::integral_constant<int, 4>());
}

template <class T>
void transpose_entries(const Transposition& t) {
  if (interleave_few<T>(t)) return;
  constexpr std::int64_t kTile = 64;  // entries along the longer side that are moved together
  const T* const from = static_cast<const T*>(t.from);
  T* const to = static_cast<T*>(t.to);
  const bool tall = t.rows >= t.columns;
  const std::int64_t longer = tall ? t.rows : t.columns, shorter = tall ? t.columns : t.rows;
  parallel_ranges(longer, std::max<std::int64_t>(kTile, (1 << 14) / shorter), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t begin = first; begin < last; begin += kTile)
      for (std::int64_t s = 0; s < shorter; ++s)
        for (std::int64_t l = begin; l < std::min(last, begin + kTile); ++l) {
          const std::int64_t i = tall ? l : s, j = tall ? s : l;
          to[i * t.to_apart + j] = from[i + j * t.from_apart];
        }
  });
}

void scale_lines_host(ValueType type, std::int64_t lines, std::int64_t length, std::int64_t apart, double factor, void* y,
                      Stream& stream) {
  const std::size_t bytes = static_cast<std::size_t>(apart) * size_of(type);
  for (std::int64_t line = 0; line < lines; ++line)
    combine_host(type, length, 1, {}, nullptr, {factor}, static_cast<char*>(y) + static_cast<std::size_t>(line) * bytes,
                 stream);
}

void transpose_host(std::size_t entry_bytes, const Transposition& entries, Stream&) {
  if (entry_bytes == 8) transpose_entries<std::uint64_t>(entries);
  else if (entry_bytes == 4) transpose_entries<std::uint32_t>(entries);
  else transpose_entries<std::uint16_t>(entries);
}

}  // namespace

const VectorBackend host_vector_backend{
    dots,           fill_host,   column_dots_host, combine_host,   square_roots_host, magnitudes_host,
    normalise_host, gather_host, add_entries_host, copy_rows_host, transpose_host,    scale_lines_host};

}  // namespace shardmat
