#include "kernels/blocks/half_product.h"

#include <cuda_fp16.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/blocks/block_product.h"
#include "kernels/blocks/dense_blocks.h"
#include "kernels/blocks/product_end.h"
#include "kernels/blocks/setup.h"
#include "kernels/blocks/sliced_product.h"
#include "kernels/blocks/small_blocks.h"

namespace shardmat::blocks {
namespace {

constexpr int kThreadsOfProduct = 128;
/// The largest value of a row lies in [2¹⁴, 2¹⁵) of its scale: f16 ends at 2¹⁶, and has 11 bits down to 2⁻¹⁴.
constexpr int kLargestExponent = 14;

/// Calls f(size) for the sizes that have a kernel; false: this one has none.
template <class F>
bool with_size(int size, const F& f) {
  switch (size) {
    case 2:
      f(std::integral_constant<int, 2>());
      return true;
    case 3:
      f(std::integral_constant<int, 3>());
      return true;
    case 6:
      f(std::integral_constant<int, 6>());
      return true;
    default:
      return false;
  }
}

__device__ __half in_half(double value, double scale) { return __double2half(value / scale); }

/// Scale and block on the diagonal of each row of blocks; a team a row.
template <int S, int kTeam>
__global__ void correct_rows(std::int64_t count, const std::int64_t* start, const std::int32_t* column, const double* value,
                             const std::int64_t* diagonal, const double* modes, float* scales, float* own) {
  constexpr int kEntries = S * S;
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kTeam;
  if (i >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % kTeam;
  const unsigned mask = team_mask<kTeam>();
  const std::int64_t begin = start[i], end = start[i + 1], at_diagonal = diagonal[i];
  double largest = 0;
  for (std::int64_t k = begin + lane; k < end; k += kTeam)
    for (int e = 0; k != at_diagonal && e < kEntries; ++e) largest = fmax(largest, fabs(value[k * kEntries + e]));
  for (int other = kTeam / 2; other > 0; other /= 2) largest = fmax(largest, __shfl_xor_sync(mask, largest, other));
  // In f32, so that the product has the same scale.
  const double scale =
      largest > 0 ? static_cast<double>(static_cast<float>(ldexp(1.0, ilogb(largest) - kLargestExponent))) : 1;
  double error[kEntries] = {};  // what rounding takes from the product with the modes
  for (std::int64_t k = begin + lane; k < end; k += kTeam) {
    if (k == at_diagonal) continue;
    double lost[kEntries];
    for (int e = 0; e < kEntries; ++e) {
      const double exact = value[k * kEntries + e];
      lost[e] = exact - scale * static_cast<double>(__half2float(in_half(exact, scale)));
    }
    if (modes == nullptr) {
      for (int e = 0; e < kEntries; ++e) error[e] += lost[e];
      continue;
    }
    const double* const of_column = modes + std::int64_t{column[k]} * kEntries;
    for (int r = 0; r < S; ++r)
      for (int q = 0; q < S; ++q)
        for (int c = 0; c < S; ++c) error[r * S + c] += lost[r * S + q] * of_column[q * S + c];
  }
  for (int e = 0; e < kEntries; ++e)
    for (int other = kTeam / 2; other > 0; other /= 2) error[e] += __shfl_xor_sync(mask, error[e], other);
  if (lane != 0) return;
  scales[i] = static_cast<float>(scale);
  double correction[kEntries];
  if (modes == nullptr) {
    for (int e = 0; e < kEntries; ++e) correction[e] = error[e];
  } else {
    // error · Nᵀ · (N · Nᵀ)⁻¹ with the modes N of the node: the least correction where N is singular.
    const double* const n = modes + i * kEntries;
    double square[kEntries], inverse[kEntries], turned[kEntries];
    for (int r = 0; r < S; ++r)
      for (int c = 0; c < S; ++c) {
        double sum = 0, across = 0;
        for (int q = 0; q < S; ++q) sum += n[r * S + q] * n[c * S + q], across += error[r * S + q] * n[c * S + q];
        square[r * S + c] = sum, turned[r * S + c] = across;
      }
    invert_symmetric<S>(square, inverse);
    for (int r = 0; r < S; ++r)
      for (int c = 0; c < S; ++c) {
        correction[r * S + c] = 0;
        for (int q = 0; q < S; ++q) correction[r * S + c] += turned[r * S + q] * inverse[q * S + c];
      }
  }
  for (int e = 0; e < kEntries; ++e)
    own[i * kEntries + e] = static_cast<float>((at_diagonal < 0 ? 0 : value[at_diagonal * kEntries + e]) + correction[e]);
}

/// Block n of row i beside the diagonal.
__device__ std::int64_t beside(std::int64_t begin, std::int64_t diagonal, std::int64_t n) {
  return begin + n + (diagonal >= 0 && begin + n >= diagonal ? 1 : 0);
}

/// Lengths of rows without their block on the diagonal.
__global__ void lengths_beside(std::int64_t count, const std::int64_t* start, const std::int64_t* diagonal,
                               std::int64_t* length) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) length[i] = start[i + 1] - start[i] - (diagonal[i] >= 0 ? 1 : 0);
}

/// Lengths of the rows of the lanes, and pairs of each slice.
__global__ void measure_pairs(std::int64_t count, std::int64_t slices, const std::int64_t* length_of,
                              const std::int32_t* order, std::int32_t* length, std::int64_t* pairs) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= slices * kLanes) return;
  const int mine = at < count ? static_cast<int>(length_of[order[at]]) : 0;
  if (at < count) length[at] = mine;
  int longest = mine;
  for (int other = kLanes / 2; other > 0; other /= 2) longest = max(longest, __shfl_xor_sync(0xffffffffu, longest, other));
  if (at % kLanes == 0) pairs[at / kLanes] = (longest + 1) / 2;
}

/// How a slice stores its columns: as differences from the row, one for all its lanes or 16 bits for each; or as they are.
enum class Columns { shared, narrow, wide };
constexpr std::int64_t kUnit = sizeof(int2);  ///< of the memory of columns
/// Units of a pair of slots.
__host__ __device__ constexpr std::int64_t units(Columns kind) {
  return kind == Columns::shared ? 1 : kind == Columns::narrow ? kLanes * sizeof(short2) / kUnit : kLanes;
}

/// Units of the columns of each slice; a warp a slice.
__global__ void measure_columns(std::int64_t count, const std::int64_t* start, const std::int32_t* column,
                                const std::int64_t* diagonal, const std::int32_t* order, const std::int32_t* length,
                                const std::int64_t* first, std::int64_t* of_columns) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, slice = at / kLanes;
  if (slice * kLanes >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t i = at < count ? order[at] : 0, pairs = first[slice + 1] - first[slice];
  const int blocks = at < count ? length[at] : 0;
  bool shared = true, narrow = true;
  for (int n = 0; n < 2 * pairs; ++n) {
    const bool there = n < blocks;
    const auto delta = static_cast<int>(there ? column[beside(start[i], diagonal[i], n)] - i : 0);
    const unsigned has = __ballot_sync(0xffffffffu, there);
    if (has == 0) break;
    const int one = __shfl_sync(0xffffffffu, delta, __ffs(static_cast<int>(has)) - 1);
    shared = shared && __all_sync(0xffffffffu, !there || delta == one);
    narrow = narrow && __all_sync(0xffffffffu, delta >= -32768 && delta <= 32767);
  }
  if (lane == 0) of_columns[slice] = pairs * units(shared ? Columns::shared : narrow ? Columns::narrow : Columns::wide);
}

__device__ Columns kind_of(std::int64_t all_units, std::int64_t pairs) {
  return all_units == pairs * units(Columns::shared)   ? Columns::shared
         : all_units == pairs * units(Columns::narrow) ? Columns::narrow
                                                       : Columns::wide;
}

/// A warp a slice; columns if `to_column` is not null.
template <int S>
__global__ void fill_pairs(std::int64_t count, const std::int64_t* start, const std::int32_t* column, const double* value,
                           const std::int64_t* diagonal, const float* scales, const std::int32_t* order,
                           const std::int32_t* length, const std::int64_t* first, const std::int64_t* first_column,
                           int2* to_column, __half2* to) {
  constexpr int kEntries = S * S;
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, slice = at / kLanes;
  if (slice * kLanes >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t i = at < count ? order[at] : 0, begin = start[i], own = diagonal[i];
  const int blocks = at < count ? length[at] : 0;
  const double scale = scales[i];
  const Columns kind = kind_of(first_column[slice + 1] - first_column[slice], first[slice + 1] - first[slice]);
  for (std::int64_t p = first[slice]; p < first[slice + 1]; ++p) {
    const int n = static_cast<int>(p - first[slice]) * 2;
    const std::int64_t k0 = beside(begin, own, n), k1 = beside(begin, own, n + 1);
    if (to_column != nullptr) {
      int2* const columns = to_column + first_column[slice] + n / 2 * units(kind);
      const auto row = static_cast<int>(i);
      const int2 mine = {n < blocks ? column[k0] : row, n + 1 < blocks ? column[k1] : row};
      if (kind == Columns::wide) columns[lane] = mine;
      if (kind == Columns::narrow)
        reinterpret_cast<short2*>(columns)[lane] = {static_cast<short>(mine.x - row), static_cast<short>(mine.y - row)};
      if (kind == Columns::shared) {  // of the first lane that has the slot
        const unsigned has0 = __ballot_sync(0xffffffffu, n < blocks), has1 = __ballot_sync(0xffffffffu, n + 1 < blocks);
        const int delta0 = __shfl_sync(0xffffffffu, mine.x - row, __ffs(static_cast<int>(has0)) - 1),
                  delta1 = has1 == 0 ? 0 : __shfl_sync(0xffffffffu, mine.y - row, __ffs(static_cast<int>(has1)) - 1);
        if (lane == 0) columns[0] = {delta0, delta1};
      }
    }
    for (int e = 0; e < kEntries; ++e)
      to[(p * kEntries + e) * kLanes + lane] =
          __halves2half2(n < blocks ? in_half(value[k0 * kEntries + e], scale) : __half(0.f),
                         n + 1 < blocks ? in_half(value[k1 * kEntries + e], scale) : __half(0.f));
  }
}

/// The pairs of a row of a row of blocks.
__global__ void pairs_of_rows(std::int64_t count, int size, const std::int64_t* length, std::int64_t* pairs) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) pairs[i] = (length[i] * size + 1) / 2;
}

/// A warp a row of blocks.
template <int S>
__global__ void fill_rows(std::int64_t count, const std::int64_t* start, const std::int32_t* column, const double* value,
                          const std::int64_t* diagonal, const float* scales, const std::int64_t* pair,
                          const std::int64_t* first, std::int32_t* to_column, __half2* to) {
  constexpr int kEntries = S * S;
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  if (i >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t begin = start[i], own = diagonal[i];
  const int blocks = static_cast<int>(first[i + 1] - first[i]), pairs = static_cast<int>(pair[i + 1] - pair[i]);
  const double scale = scales[i];
  if (to_column != nullptr)
    for (int n = lane; n < blocks; n += kLanes) to_column[first[i] + n] = column[beside(begin, own, n)];
  const auto entry = [&](int r, int e) {
    const int n = e / S;
    return n < blocks ? in_half(value[beside(begin, own, n) * kEntries + r * S + e % S], scale) : __half(0.f);
  };
  for (int j = lane; j < S * pairs; j += kLanes) {
    const int r = j / pairs, q = j - r * pairs;
    to[pair[i] * S + j] = __halves2half2(entry(r, 2 * q), entry(r, 2 * q + 1));
  }
}

struct Halves {
  const std::int64_t* __restrict__ start;
  const std::int32_t* __restrict__ order, * __restrict__ length;
  const std::int64_t* __restrict__ first;  ///< unit or place of the columns of a slice or row
  const void* __restrict__ column;
  const __half2* __restrict__ value;
  const float* __restrict__ scale, * __restrict__ own;
  const float* __restrict__ x;
  std::int64_t count;
  int team;
};

template <int S, class End>
__global__ void __launch_bounds__(kThreadsOfProduct) multiply_half_slices(Halves a, End end) {
  constexpr int kEntries = S * S, kAhead = kEntries <= 4 ? 4 : kEntries <= 9 ? 2 : 1;  // pairs
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreadsOfProduct + threadIdx.x, slice = at / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const bool real = at < a.count;
  const std::int64_t i = real ? __ldg(a.order + at) : 0;
  const int pairs = real ? (__ldg(a.length + at) + 1) / 2 : 0;
  const std::int64_t from = real ? __ldg(a.start + slice) : 0, unit = real ? __ldg(a.first + slice) : 0;
  const Columns kind =
      real ? kind_of(__ldg(a.first + slice + 1) - unit, __ldg(a.start + slice + 1) - from) : Columns::shared;
  const __half2* value = a.value + from * (kEntries * kLanes) + lane;
  const int2* column = static_cast<const int2*>(a.column) + unit;
  const auto row = static_cast<int>(i);
  const auto rows = static_cast<unsigned>(a.count);
  const auto inside = [&](int j) { return static_cast<unsigned>(j) < rows ? j : row; };  // a slot may lack a block
  cuda::after_previous();
  float sum[S] = {};
  for (int p = 0; p < pairs; p += kAhead) {
    __half2 of_a[kAhead][kEntries];
    int2 columns[kAhead];
    float2 of_x[kAhead][S];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const bool there = p + u < pairs;
      if (kind == Columns::shared) {
        const int2 delta = there ? __ldg(column + p + u) : int2{0, 0};
        columns[u] = {inside(row + delta.x), inside(row + delta.y)};
      } else if (kind == Columns::narrow) {
        const short2 delta =
            there ? __ldcs(reinterpret_cast<const short2*>(column) + (p + u) * kLanes + lane) : short2{0, 0};
        columns[u] = {row + delta.x, row + delta.y};
      } else {
        columns[u] = there ? __ldcs(column + (p + u) * kLanes + lane) : int2{row, row};
      }
#pragma unroll
      for (int e = 0; e < kEntries; ++e)
        of_a[u][e] = there ? __ldcs(value + ((p + u) * kEntries + e) * kLanes) : __half2{0.f, 0.f};
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u)
#pragma unroll
      for (int c = 0; c < S; ++c)
        of_x[u][c] = {a.x[std::int64_t{columns[u].x} * S + c], a.x[std::int64_t{columns[u].y} * S + c]};
#pragma unroll
    for (int u = 0; u < kAhead; ++u)
#pragma unroll
      for (int c = 0; c < S; ++c)
#pragma unroll
        for (int r = 0; r < S; ++r) {
          const float2 both = __half22float2(of_a[u][r * S + c]);
          sum[r] = fmaf(both.y, of_x[u][c].y, fmaf(both.x, of_x[u][c].x, sum[r]));
        }
  }
  if (!real) return;
  const float scale = __ldg(a.scale + i);
#pragma unroll
  for (int r = 0; r < S; ++r) sum[r] *= scale;
#pragma unroll
  for (int c = 0; c < S; ++c) {
    const float x = a.x[i * S + c];
#pragma unroll
    for (int r = 0; r < S; ++r) sum[r] = fmaf(__ldg(a.own + i * kEntries + r * S + c), x, sum[r]);
  }
  end_rows<S>(end, a.x, i, sum);
}

template <int S, bool kWide, class End>
__global__ void __launch_bounds__(kThreadsOfProduct) multiply_half_rows(Halves a, End end) {
  constexpr int kAhead = S <= 3 ? 3 : 2;  // pairs of entries
  const int team = kWide ? kThreadsOfProduct : a.team;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreadsOfProduct + threadIdx.x,
                     i = kWide ? blockIdx.x : thread / team;
  const int lane = static_cast<int>(threadIdx.x) & (team - 1);
  const bool real = i < a.count;
  const std::int64_t begin = real ? __ldg(a.start + i) : 0, first = real ? __ldg(a.first + i) : 0;
  const int pairs = real ? static_cast<int>(__ldg(a.start + i + 1) - begin) : 0,
            entries = real ? static_cast<int>(__ldg(a.first + i + 1) - first) * S : 0;
  const __half2* const value = a.value + begin * S;
  const std::int32_t* const column = static_cast<const std::int32_t*>(a.column) + first;
  cuda::after_previous();
  float sum[S] = {};
  for (int j = lane; j < pairs; j += team * kAhead) {
    __half2 of_a[kAhead][S];
    std::int64_t at[kAhead][2];
    float2 of_x[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int q = j + u * team, e = 2 * q;
      const bool there = q < pairs;
      at[u][0] = there ? std::int64_t{__ldg(column + e / S)} * S + e % S : -1;
      if constexpr (S % 2 == 0) at[u][1] = at[u][0] + 1;
      else at[u][1] = there && e + 1 < entries ? std::int64_t{__ldg(column + (e + 1) / S)} * S + (e + 1) % S : at[u][0];
#pragma unroll
      for (int r = 0; r < S; ++r) of_a[u][r] = there ? __ldcs(value + std::int64_t{r} * pairs + q) : __half2{0.f, 0.f};
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) of_x[u] = at[u][0] >= 0 ? float2{a.x[at[u][0]], a.x[at[u][1]]} : float2{0, 0};
#pragma unroll
    for (int u = 0; u < kAhead; ++u)
#pragma unroll
      for (int r = 0; r < S; ++r) {
        const float2 both = __half22float2(of_a[u][r]);
        sum[r] = fmaf(both.y, of_x[u].y, fmaf(both.x, of_x[u].x, sum[r]));
      }
  }
  const int width = team < kLanes ? team : kLanes;
#pragma unroll
  for (int r = 0; r < S; ++r)
    for (int other = width / 2; other > 0; other /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], other);
  if constexpr (kWide) {
    __shared__ float of_warp[kThreadsOfProduct / kLanes][S];
    const int warp = static_cast<int>(threadIdx.x) / kLanes;
    if (threadIdx.x % kLanes == 0)
      for (int r = 0; r < S; ++r) of_warp[warp][r] = sum[r];
    __syncthreads();
    if (warp > 0) return;
#pragma unroll
    for (int r = 0; r < S; ++r) {
      sum[r] = of_warp[0][r];
      for (int w = 1; w < kThreadsOfProduct / kLanes; ++w) sum[r] += of_warp[w][r];
    }
  }
  float mine = 0;
#pragma unroll
  for (int r = 0; r < S; ++r) mine = lane == r ? sum[r] : mine;
  if (real && lane < S) {
    mine *= __ldg(a.scale + i);
#pragma unroll
    for (int c = 0; c < S; ++c) mine = fmaf(__ldg(a.own + (i * S + lane) * S + c), a.x[i * S + c], mine);
  }
  end_row<S>(end, a.x, a.count, i, lane, width, mine);
}

std::int64_t values_of(std::int64_t pairs, std::int64_t each) {
  return pairs * each * static_cast<std::int64_t>(sizeof(__half2));
}

}  // namespace

bool HalfProduct::takes(int row_size, int col_size) {
  return row_size == col_size && with_size(row_size, [](auto) {});
}

HalfProduct::HalfProduct(const BlockRows& rows, const Buffer* modes, bool lanes, int team, Stream& stream)
    : size_(rows.row_size), team_(team), lanes_(lanes), count_(rows.count) {
  if (modes != nullptr) {
    modes_ = Buffer(stream.device(), modes->bytes());
    copy_on_device(modes_.data(), modes->data(), modes->bytes(), stream);
  }
  const std::int64_t block = std::int64_t{size_} * size_;
  require_memory(stream.device(), count_ * (block + 1) * 4, "a level of multigrid");
  scale_ = array<float>(count_, stream), own_ = array<float>(count_ * block, stream);
  update(rows, stream);
}

void HalfProduct::update(const BlockRows& rows, Stream& stream) {
  const Buffer diagonal = diagonal_places(rows, stream);
  const bool is_new = column_.bytes() == 0;
  with_size(size_, [&]<int S>(std::integral_constant<int, S>) {
    with_team(rows.blocks, count_, [&]<int kTeam>(std::integral_constant<int, kTeam>) {
      cuda::launch(correct_rows<S, kTeam>, count_ * kTeam, kThreadsOfProduct, stream, count_, rows.start.as<std::int64_t>(),
                   rows.column.as<std::int32_t>(), rows.value.as<double>(), diagonal.as<std::int64_t>(), modes_.as<double>(),
                   scale_.as<float>(), own_.as<float>());
    });
    if (is_new) {
      const Buffer length = array<std::int64_t>(count_ + 1, stream);
      cuda::launch(lengths_beside, count_, kThreads, stream, count_, rows.start.as<std::int64_t>(),
                   diagonal.as<std::int64_t>(), length.as<std::int64_t>());
      if (lanes_) {
        const std::int64_t slices = (count_ + kLanes - 1) / kLanes;
        order_ = rows_by_length(rows, stream);
        length_ = array<std::int32_t>(count_, stream), start_ = array<std::int64_t>(slices + 1, stream);
        cuda::launch(measure_pairs, slices * kLanes, kThreads, stream, count_, slices, length.as<std::int64_t>(),
                     order_.as<std::int32_t>(), length_.as<std::int32_t>(), start_.as<std::int64_t>());
        const std::int64_t pairs = sum_before(start_.as<std::int64_t>(), slices, stream) * kLanes;
        first_ = array<std::int64_t>(slices + 1, stream);
        cuda::launch(measure_columns, slices * kLanes, kThreads, stream, count_, rows.start.as<std::int64_t>(),
                     rows.column.as<std::int32_t>(), diagonal.as<std::int64_t>(), order_.as<std::int32_t>(),
                     length_.as<std::int32_t>(), start_.as<std::int64_t>(), first_.as<std::int64_t>());
        const std::int64_t all_units = sum_before(first_.as<std::int64_t>(), slices, stream);
        require_memory(stream.device(), kUnit * all_units + values_of(pairs, S * S), "a level of multigrid");
        column_ = array<int2>(all_units + 1, stream), value_ = array<__half2>(pairs * S * S, stream);
      } else {
        first_ = array<std::int64_t>(count_ + 1, stream), start_ = array<std::int64_t>(count_ + 1, stream);
        copy_on_device(first_.data(), length.data(), first_.bytes(), stream);
        cuda::launch(pairs_of_rows, count_, kThreads, stream, count_, S, length.as<std::int64_t>(),
                     start_.as<std::int64_t>());
        const std::int64_t blocks = sum_before(first_.as<std::int64_t>(), count_, stream),
                           pairs = sum_before(start_.as<std::int64_t>(), count_, stream);
        require_memory(stream.device(), 4 * blocks + values_of(pairs, S), "a level of multigrid");
        column_ = array<std::int32_t>(blocks + 1, stream), value_ = array<__half2>(pairs * S, stream);
      }
    }
    if (lanes_)
      cuda::launch(fill_pairs<S>, (count_ + kLanes - 1) / kLanes * kLanes, kThreads, stream, count_,
                   rows.start.as<std::int64_t>(), rows.column.as<std::int32_t>(), rows.value.as<double>(),
                   diagonal.as<std::int64_t>(), scale_.as<float>(), order_.as<std::int32_t>(), length_.as<std::int32_t>(),
                   start_.as<std::int64_t>(), first_.as<std::int64_t>(), is_new ? column_.as<int2>() : nullptr,
                   value_.as<__half2>());
    else
      cuda::launch(fill_rows<S>, count_ * kLanes, kThreads, stream, count_, rows.start.as<std::int64_t>(),
                   rows.column.as<std::int32_t>(), rows.value.as<double>(), diagonal.as<std::int64_t>(), scale_.as<float>(),
                   start_.as<std::int64_t>(), first_.as<std::int64_t>(), is_new ? column_.as<std::int32_t>() : nullptr,
                   value_.as<__half2>());
  });
  stream.synchronize();
}

namespace {

template <class End>
void run(const Halves& a, const End& end, int size, bool lanes, Stream& stream) {
  with_size(size, [&]<int S>(std::integral_constant<int, S>) {
    const auto launch = [&](auto kernel, std::int64_t blocks) {
      cuda::launch_grid_early(kernel, blocks, 1, dim3(kThreadsOfProduct), 0, stream, a, end);
    };
    if (lanes) return launch(multiply_half_slices<S, End>, (a.count + kThreadsOfProduct - 1) / kThreadsOfProduct);
    if (a.team == kThreadsOfProduct) return launch(multiply_half_rows<S, true, End>, a.count);
    const std::int64_t at_once = kThreadsOfProduct / a.team;
    launch(multiply_half_rows<S, false, End>, (a.count + at_once - 1) / at_once);
  });
}

}  // namespace

void HalfProduct::multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const {
  run(Halves{start_.as<std::int64_t>(), order_.as<std::int32_t>(), length_.as<std::int32_t>(), first_.as<std::int64_t>(),
             column_.data(), value_.as<__half2>(), scale_.as<float>(), own_.as<float>(), static_cast<const float*>(x),
             count_, team_},
      plain_end<float>(alpha, beta, y), size_, lanes_, stream);
}

void HalfProduct::multiply(const void* d, const SmootherStep& step, Stream& stream) const {
  run(Halves{start_.as<std::int64_t>(), order_.as<std::int32_t>(), length_.as<std::int32_t>(), first_.as<std::int64_t>(),
             column_.data(), value_.as<__half2>(), scale_.as<float>(), own_.as<float>(), static_cast<const float*>(d),
             count_, team_},
      step_end<float>(step), size_, lanes_, stream);
}

std::int64_t HalfProduct::bytes() const {
  std::int64_t bytes = 0;
  for (const Buffer* const one : {&modes_, &scale_, &own_, &start_, &order_, &length_, &first_, &column_, &value_})
    bytes += static_cast<std::int64_t>(one->bytes());
  return bytes;
}

}  // namespace shardmat::blocks
