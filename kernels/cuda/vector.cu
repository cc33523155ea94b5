// Dot products with a fixed grid and a fixed tree, so the sum does not depend on scheduling.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cuda/lane_sums.h"
#include "kernels/cuda/launch.h"
#include "kernels/vector_backends.h"

namespace shardmat {
namespace {

constexpr int kThreads = 256;

/// Sums a over the thread block in a fixed order; valid in thread 0.
__device__ double block_sum(double a) {
  __shared__ double of_warp[kThreads / 32];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) a += __shfl_down_sync(0xffffffffu, a, offset);
  __syncthreads();  // of_warp may still be read from the call before
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = a;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0)
    for (const double w : of_warp) sum += w;
  return sum;
}

/// The block that is done last adds the partial sums of all, in their order. `done` is 0 before and after.
template <class T>
__global__ void dot_products(std::int64_t n, const T* __restrict__ x, const T* __restrict__ y, double* partial,
                             unsigned* done, double* __restrict__ result) {
  double xy = 0, yy = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += static_cast<std::int64_t>(kDotBlocks) * kThreads) {
    const double yi = static_cast<double>(y[i]);
    xy += static_cast<double>(x[i]) * yi;
    yy += yi * yi;
  }
  xy = block_sum(xy);
  yy = block_sum(yy);
  bool last = false;
  if (threadIdx.x == 0) {
    partial[2 * blockIdx.x] = xy, partial[2 * blockIdx.x + 1] = yy;
    __threadfence();
    last = atomicInc(done, kDotBlocks - 1) == kDotBlocks - 1;
  }
  if (!__syncthreads_or(last)) return;
  __threadfence();
  xy = 0, yy = 0;
  for (int b = threadIdx.x; b < kDotBlocks; b += kThreads) xy += __ldcg(partial + 2 * b), yy += __ldcg(partial + 2 * b + 1);
  xy = block_sum(xy);
  yy = block_sum(yy);
  if (threadIdx.x == 0) result[0] = xy, result[1] = yy;
}

template <class T>
__global__ void scale_by_inverse_norm(std::int64_t n, const T* __restrict__ y, const double* __restrict__ norm_squared,
                                      T* __restrict__ x) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] = static_cast<T>((*norm_squared > 0 ? rsqrt(*norm_squared) : 0.0) * static_cast<double>(y[i]));
}

template <class T>
__global__ void fill_entries(std::int64_t n, T value, T* __restrict__ x) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] = value;
}

/// Blocks (b, c) sum columns c·kDotColumns … of some rows; the last to be done for these columns adds the sums of all blocks
/// in their order. A thread sees one column. `done` is 0 before and after.
template <class T>
__global__ void column_dot_products(std::int64_t n, std::int64_t columns, const T* __restrict__ x, const T* __restrict__ y,
                                    double* partial, unsigned* done, double* __restrict__ result) {
  __shared__ double sums[kThreads];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * kDotColumns;
  const int width = static_cast<int>(columns - first < kDotColumns ? columns - first : kDotColumns);
  const int lanes = kThreads / width, lane = static_cast<int>(threadIdx.x) / width,
            column = static_cast<int>(threadIdx.x) % width;
  const bool works = lane < lanes;
  const std::int64_t at = first + column;
  double sum = 0;
  if (works)
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * lanes + lane; i < n;
         i += static_cast<std::int64_t>(gridDim.x) * lanes)
      sum += static_cast<double>(x[i * columns + at]) * static_cast<double>(y[i * columns + at]);
  sums[threadIdx.x] = sum;
  cuda::add_lanes(sums, lanes, width, works ? lane : lanes, column);
  if (lane == 0) {
    partial[blockIdx.x * columns + at] = sums[column];
    __threadfence();
  }
  __syncthreads();
  bool last = false;
  if (threadIdx.x == 0) last = atomicInc(done + 2 * blockIdx.y, gridDim.x - 1) == gridDim.x - 1;
  if (!__syncthreads_or(last)) return;
  __threadfence();
  sum = 0;
  if (works)
    for (unsigned b = static_cast<unsigned>(lane); b < gridDim.x; b += static_cast<unsigned>(lanes))
      sum += __ldcg(partial + b * columns + at);
  sums[threadIdx.x] = sum;
  cuda::add_lanes(sums, lanes, width, works ? lane : lanes, column);
  if (lane == 0) result[at] = sums[column];
}

__global__ void take_square_roots(std::int64_t n, double* values) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) values[i] = sqrt(values[i]);
}

/// Magnitudes as bits, which are ordered as the numbers are. Ends as {least, largest}.
template <class T>
__global__ void __launch_bounds__(kThreads)
    find_magnitudes(std::int64_t n, const T* __restrict__ x, unsigned long long* found) {
  double least = INFINITY, largest = 0;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += threads) {
    const double magnitude = fabs(static_cast<double>(x[i]));
    if (magnitude < least) least = magnitude;
    if (magnitude > largest) largest = magnitude;
  }
  for (int other = 16; other > 0; other /= 2) {
    least = fmin(least, __shfl_xor_sync(0xffffffffu, least, other));
    largest = fmax(largest, __shfl_xor_sync(0xffffffffu, largest, other));
  }
  if (threadIdx.x % 32 != 0) return;
  atomicMin(found, static_cast<unsigned long long>(__double_as_longlong(least)));
  atomicMax(found + 1, static_cast<unsigned long long>(__double_as_longlong(largest)));
}

/// What a factor is for column j.
__device__ double factor_of(const Factor& f, std::int64_t j) {
  return f.per_column != nullptr ? f.value * f.per_column[j] : f.value;
}

template <class T, class Index>
__global__ void combine_entries(Index n, Index columns, Factor a, const T* __restrict__ x, Factor b, T* y) {
  const Index at = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= n) return;
  const std::int64_t j = columns == 1 ? 0 : static_cast<std::int64_t>(at % columns);
  T value = x != nullptr ? static_cast<T>(factor_of(a, j)) * x[at] : T(0);
  if (b.per_column != nullptr || b.value != 0) value += static_cast<T>(factor_of(b, j)) * y[at];
  y[at] = value;
}

/// Entries of `words` words; a thread copies one word.
template <class Word>
__global__ void gather(std::int64_t n, int words, const std::int32_t* __restrict__ places, const Word* __restrict__ from,
                       Word* __restrict__ to) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t i = words == 1 ? at : at / words;
  if (i < n) to[at] = from[static_cast<std::int64_t>(places[i]) * words + (at - i * words)];
}

/// A thread adds one value.
template <class T>
__global__ void add_values(std::int64_t n, std::int64_t columns, const std::int32_t* __restrict__ places,
                           const T* __restrict__ from, T* __restrict__ to, std::int64_t to_row, std::int64_t to_column) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t i = columns == 1 ? at : at / columns;
  if (i >= n) return;
  const std::int64_t place = places != nullptr ? places[i] : i;
  to[place * to_row + (at - i * columns) * to_column] += from[at];
}

/// Rows of `words` words; blockDim.x threads take a row.
template <class Word>
__global__ void copy_words(std::int64_t n, int words, const Word* __restrict__ from, std::int64_t from_apart,
                           Word* __restrict__ to, std::int64_t to_apart) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= n) return;
  for (int word = static_cast<int>(threadIdx.x); word < words; word += static_cast<int>(blockDim.x))
    to[row * to_apart + word] = from[row * from_apart + word];
}

/// Lines of `length` entries; blockDim.x threads take a line.
template <class T>
__global__ void scale_entries(std::int64_t lines, std::int64_t length, std::int64_t apart, T factor, T* y) {
  const std::int64_t line = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (line >= lines) return;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x; i < length; i += step) {
    T& entry = y[line * apart + i];
    entry = factor != T(0) ? factor * entry : T(0);
  }
}

constexpr int kTileBits = 10;  ///< of the entries of a tile

/// Where tiles lie: 2^row_bits rows and 2^(kTileBits - row_bits) columns each.
struct Tiles {
  int row_bits;
  int apart;       ///< from a column of a tile to the next in shared memory, so that banks differ
  bool rows_in_x;  ///< tiles follow each other along the rows in the x direction of the grid
};

/// from[i + j·from_apart] becomes to[i·to_apart + j]: threads next to each other read along i and write along j.
template <class T>
__global__ void transpose_tiles(Tiles tiles, std::int64_t rows, std::int64_t columns, const T* __restrict__ from,
                                std::int64_t from_apart, T* __restrict__ to, std::int64_t to_apart) {
  constexpr int kEntries = 1 << kTileBits;
  __shared__ T tile[kEntries + kEntries / 2];
  const int row_bits = tiles.row_bits, column_bits = kTileBits - row_bits;
  const std::int64_t x = blockIdx.x, y = blockIdx.y;
  const std::int64_t first_row = (tiles.rows_in_x ? x : y) << row_bits, first_column = (tiles.rows_in_x ? y : x)
                                                                                       << column_bits;
#pragma unroll
  for (int step = 0; step < kEntries / kThreads; ++step) {
    const int entry = step * kThreads + static_cast<int>(threadIdx.x);
    const int i = entry & ((1 << row_bits) - 1), j = entry >> row_bits;
    if (first_row + i < rows && first_column + j < columns)
      tile[j * tiles.apart + i] = from[first_row + i + (first_column + j) * from_apart];
  }
  __syncthreads();
#pragma unroll
  for (int step = 0; step < kEntries / kThreads; ++step) {
    const int entry = step * kThreads + static_cast<int>(threadIdx.x);
    const int j = entry & ((1 << column_bits) - 1), i = entry >> column_bits;
    if (first_row + i < rows && first_column + j < columns)
      to[(first_row + i) * to_apart + first_column + j] = tile[j * tiles.apart + i];
  }
}

void dots(ValueType type, std::int64_t n, const void* x, const void* y, double* partial, double* result, Stream& stream) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cuda::launch(dot_products<T>, std::int64_t{kDotBlocks} * kThreads, kThreads, stream, n, static_cast<const T*>(x),
                 static_cast<const T*>(y), partial, reinterpret_cast<unsigned*>(partial + 2 * kDotBlocks), result);
  });
}

void fill_cuda(ValueType type, std::int64_t n, double value, void* x, Stream& stream) {
  dispatch_operands(type, [&](auto tag, auto) {
    using T = typename decltype(tag)::type;
    cuda::launch(fill_entries<T>, n, kThreads, stream, n, static_cast<T>(value), static_cast<T*>(x));
  });
}

void column_dots_cuda(ValueType type, std::int64_t n, std::int64_t columns, const void* x, const void* y, double* partial,
                      double* result, Stream& stream) {
  const std::int64_t chunks = (columns + kDotColumns - 1) / kDotColumns,
                     lanes = kThreads / std::min<std::int64_t>(columns, kDotColumns);
  const std::int64_t blocks = std::clamp<std::int64_t>((n + lanes - 1) / lanes, 1, kDotBlocks);
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cuda::launch_grid(column_dot_products<T>, blocks, chunks, dim3(kThreads), 0, stream, n, columns,
                      static_cast<const T*>(x), static_cast<const T*>(y), partial,
                      reinterpret_cast<unsigned*>(partial + kDotBlocks * columns), result);
  });
}

void combine_cuda(ValueType type, std::int64_t n, std::int64_t columns, Factor a, const void* x, Factor b, void* y,
                  Stream& stream) {
  const std::int64_t entries = n * columns;
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&](auto index) {
      using Index = decltype(index);
      cuda::launch(combine_entries<T, Index>, entries, kThreads, stream, static_cast<Index>(entries),
                   static_cast<Index>(columns), a, static_cast<const T*>(x), b, static_cast<T*>(y));
    };
    if (entries < std::int64_t{1} << 31) run(std::uint32_t{});
    else run(std::int64_t{});
  });
}

void square_roots_cuda(std::int64_t n, double* values, Stream& stream) {
  cuda::launch(take_square_roots, n, kThreads, stream, n, values);
}

Magnitudes magnitudes_cuda(ValueType type, std::int64_t n, const void* x, Stream& stream) {
  const Magnitudes none{std::numeric_limits<double>::infinity(), 0};
  const Buffer found(stream.device(), sizeof(Magnitudes));
  copy_to_device(found.data(), &none, sizeof none, stream);
  constexpr std::int64_t kMostThreadBlocks = 1024;
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cuda::launch_blocks(find_magnitudes<T>, std::min(kMostThreadBlocks, (n + kThreads - 1) / kThreads), kThreads, 0, stream,
                        n, static_cast<const T*>(x), found.as<unsigned long long>());
  });
  Magnitudes result = none;
  copy_to_host(&result, found.data(), sizeof result, stream);
  return result;
}

void normalise_cuda(ValueType type, std::int64_t n, const void* y, const double* norm_squared, void* x, Stream& stream) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cuda::launch(scale_by_inverse_norm<T>, n, kThreads, stream, n, static_cast<const T*>(y), norm_squared,
                 static_cast<T*>(x));
  });
}

/// Calls copy(Word()) with the widest word whose size divides `bytes`: sizes and addresses joined by |.
template <class F>
void with_word(std::size_t bytes, const F& copy) {
  if (bytes % 16 == 0) copy(int4{});
  else if (bytes % 8 == 0) copy(int2{});
  else if (bytes % 4 == 0) copy(int{});
  else copy(short{});
}

void gather_cuda(std::size_t entry_bytes, std::int64_t n, const std::int32_t* places, const void* from, void* to,
                 Stream& stream) {
  with_word(entry_bytes, [&]<class Word>(Word) {
    const auto words = static_cast<std::int64_t>(entry_bytes / sizeof(Word));
    cuda::launch(gather<Word>, n * words, kThreads, stream, n, static_cast<int>(words), places,
                 static_cast<const Word*>(from), static_cast<Word*>(to));
  });
}

void add_entries_cuda(ValueType type, std::int64_t n, std::int64_t columns, const std::int32_t* places, const void* from,
                      void* to, DenseStrides to_strides, Stream& stream) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cuda::launch(add_values<T>, n * columns, kThreads, stream, n, columns, places, static_cast<const T*>(from),
                 static_cast<T*>(to), to_strides.row, to_strides.column);
  });
}

void copy_rows_cuda(std::size_t row_bytes, std::int64_t n, const void* from, std::size_t from_apart, void* to,
                    std::size_t to_apart, Stream& stream) {
  with_word(
      row_bytes | from_apart | to_apart | reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to),
      [&]<class Word>(Word) {
        const auto words = static_cast<unsigned>(row_bytes / sizeof(Word)), across = std::min(32u, std::bit_ceil(words)),
                   rows = kThreads / across;
        cuda::launch_grid(copy_words<Word>, (n + rows - 1) / rows, 1, dim3(across, rows), 0, stream, n,
                          static_cast<int>(words), static_cast<const Word*>(from),
                          static_cast<std::int64_t>(from_apart / sizeof(Word)), static_cast<Word*>(to),
                          static_cast<std::int64_t>(to_apart / sizeof(Word)));
      });
}

void scale_lines_cuda(ValueType type, std::int64_t lines, std::int64_t length, std::int64_t apart, double factor, void* y,
                      Stream& stream) {
  const unsigned across = length >= kThreads ? kThreads : std::bit_ceil(static_cast<unsigned>(length)),
                 lines_of_block = kThreads / across;
  constexpr std::int64_t kMostAcross = 1024;  // thread blocks for one line
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cuda::launch_grid(scale_entries<T>, (lines + lines_of_block - 1) / lines_of_block,
                      std::min<std::int64_t>(kMostAcross, (length + across - 1) / across), dim3(across, lines_of_block), 0,
                      stream, lines, length, apart, static_cast<T>(factor), static_cast<T*>(y));
  });
}

template <class T>
void transpose_entries(const Transposition& t, Stream& stream) {
  const bool tall = t.rows >= t.columns;
  const auto shorter = static_cast<unsigned>(std::min<std::int64_t>(32, tall ? t.columns : t.rows));
  const int short_bits = std::max(1, static_cast<int>(std::bit_width(shorter - 1))), long_bits = kTileBits - short_bits;
  Tiles tiles{};
  tiles.row_bits = tall ? long_bits : short_bits;
  tiles.apart = (1 << tiles.row_bits) + (tall ? 32 >> short_bits : 1);
  tiles.rows_in_x = tall;
  const auto count = [](std::int64_t entries, int bits) { return (entries + (std::int64_t{1} << bits) - 1) >> bits; };
  cuda::launch_grid(transpose_tiles<T>, count(tall ? t.rows : t.columns, long_bits),
                    count(tall ? t.columns : t.rows, short_bits), dim3(kThreads), 0, stream, tiles, t.rows, t.columns,
                    static_cast<const T*>(t.from), t.from_apart, static_cast<T*>(t.to), t.to_apart);
}

void transpose_cuda(std::size_t entry_bytes, const Transposition& entries, Stream& stream) {
  if (entry_bytes == 8) transpose_entries<std::uint64_t>(entries, stream);
  else if (entry_bytes == 4) transpose_entries<std::uint32_t>(entries, stream);
  else transpose_entries<std::uint16_t>(entries, stream);
}

}  // namespace

const VectorBackend cuda_vector_backend{
    dots,           fill_cuda,   column_dots_cuda, combine_cuda,   square_roots_cuda, magnitudes_cuda,
    normalise_cuda, gather_cuda, add_entries_cuda, copy_rows_cuda, transpose_cuda,    scale_lines_cuda};

}  // namespace shardmat
