// Teams of lanes walk rows of CSR; extremes meet in memory, as integers that are ordered as the numbers are.
#include <algorithm>
#include <bit>

#include "kernels/cuda/launch.h"
#include "kernels/diagonal.h"
#include "kernels/formats/csr.h"

namespace shardmat {
namespace {

constexpr int kThreadsOfDiagonal = 256, kLanes = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

/// lowest, least, least_not_0, most.
struct OrderedExtremes {
  long long of[4];
};

__host__ __device__ inline long long flipped(long long bits) { return bits ^ ((bits >> 63) & 0x7fffffffffffffffll); }
__device__ long long ordered(double number) { return flipped(__double_as_longlong(number)); }

template <class T>
struct DiagonalRows {
  std::int64_t count, first;
  const std::int32_t* narrow_start;  ///< or
  const std::int64_t* wide_start;
  const std::int32_t* columns;
  const T* values;
  T* entries;  ///< null: nobody wants them
  __device__ std::int64_t start(std::int64_t row) const {
    return wide_start != nullptr ? wide_start[row] : narrow_start[row];
  }
};

/// `found`: null, or where extremes are added.
template <class T, int kTeam>
__global__ void __launch_bounds__(kThreadsOfDiagonal) walk_diagonal(DiagonalRows<T> a, OrderedExtremes* found) {
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (kThreadsOfDiagonal / kLanes),
                     warp = (static_cast<std::int64_t>(blockIdx.x) * kThreadsOfDiagonal + threadIdx.x) / kLanes;
  constexpr int kRows = kLanes / kTeam;  // of a warp
  const int lane = static_cast<int>(threadIdx.x) % kTeam, team = static_cast<int>(threadIdx.x) % kLanes / kTeam;
  double lowest = INFINITY, least = INFINITY, least_not_0 = INFINITY, most = 0;
  for (std::int64_t base = warp * kRows; base < a.count; base += warps * kRows) {
    const std::int64_t row = base + team;
    const bool inside = row < a.count;
    double entry = 0, diagonal = 0, others = 0;
    const std::int64_t end = inside ? a.start(row + 1) : 0;
    for (std::int64_t k = (inside ? a.start(row) : 0) + lane; k < end; k += kTeam) {
      const double value = static_cast<double>(a.values[k]);
      if (a.columns[k] == a.first + row) entry = value, diagonal = fmax(diagonal, fabs(value));
      else others = fmax(others, fabs(value));
    }
    for (int other = kTeam / 2; other > 0; other /= 2) {
      entry += __shfl_xor_sync(kAllLanes, entry, other);  // one lane has it
      diagonal = fmax(diagonal, __shfl_xor_sync(kAllLanes, diagonal, other));
      others = fmax(others, __shfl_xor_sync(kAllLanes, others, other));
    }
    if (!inside) continue;
    if (a.entries != nullptr && lane == 0) a.entries[row] = static_cast<T>(entry);
    lowest = fmin(lowest, isnan(entry) ? -INFINITY : entry), least = fmin(least, diagonal);
    if (diagonal > 0) least_not_0 = fmin(least_not_0, diagonal);
    if (DiagonalAndOthers{diagonal, others}.above_others()) most = fmax(most, diagonal);
  }
  if (found == nullptr) return;
  for (int other = kLanes / 2; other > 0; other /= 2) {
    lowest = fmin(lowest, __shfl_xor_sync(kAllLanes, lowest, other));
    least = fmin(least, __shfl_xor_sync(kAllLanes, least, other));
    least_not_0 = fmin(least_not_0, __shfl_xor_sync(kAllLanes, least_not_0, other));
    most = fmax(most, __shfl_xor_sync(kAllLanes, most, other));
  }
  if (threadIdx.x % kLanes != 0) return;
  atomicMin(&found->of[0], ordered(lowest));
  atomicMin(&found->of[1], ordered(least));
  atomicMin(&found->of[2], ordered(least_not_0));
  atomicMax(&found->of[3], ordered(most));
}

void walk(const CsrStorage& rows, std::int64_t first, void* entries, OrderedExtremes* found, Stream& stream) {
  constexpr std::int64_t kLongRows = 16;  // mean; a warp takes one of them
  constexpr std::int64_t kBlocksOfEach = 8;
  if (rows.rows == 0) return;
  const std::int64_t team = rows.nnz < kLongRows * rows.rows ? 4 : kLanes,
                     all = (rows.rows * team + kThreadsOfDiagonal - 1) / kThreadsOfDiagonal,
                     blocks = std::min(all, kBlocksOfEach * cuda::multiprocessors(stream.device()));
  dispatch(rows.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const DiagonalRows<T> a{rows.rows,
                            first,
                            rows.wide_offsets ? nullptr : rows.row_ptr.as<std::int32_t>(),
                            rows.wide_offsets ? rows.row_ptr.as<std::int64_t>() : nullptr,
                            rows.col_idx.as<std::int32_t>(),
                            rows.values.as<T>(),
                            static_cast<T*>(entries)};
    cuda::launch_blocks(team == 4 ? walk_diagonal<T, 4> : walk_diagonal<T, kLanes>, blocks, kThreadsOfDiagonal, 0, stream, a,
                        found);
  });
}

}  // namespace

DiagonalExtremes diagonal_extremes(const CsrStorage& rows, std::int64_t first, Stream& stream) {
  const DiagonalExtremes none;
  const auto bits = [](double number) { return std::bit_cast<long long>(number); };
  OrderedExtremes extremes{{bits(none.lowest), bits(none.least), bits(none.least_not_0), bits(none.most)}};
  const Buffer found(stream.device(), sizeof extremes);
  copy_to_device(found.data(), &extremes, sizeof extremes, stream);
  walk(rows, first, nullptr, found.as<OrderedExtremes>(), stream);
  copy_to_host(&extremes, found.data(), sizeof extremes, stream);
  const auto number = [&](int k) { return std::bit_cast<double>(flipped(extremes.of[k])); };
  return {number(0), number(1), number(2), number(3)};
}

void copy_diagonal(const CsrStorage& rows, std::int64_t first, void* to, Stream& stream) {
  walk(rows, first, to, nullptr, stream);
}

}  // namespace shardmat
