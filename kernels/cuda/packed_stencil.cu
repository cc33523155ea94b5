// Packed rows on the device, for matrices whose rows mostly share their columns (stencils, diagonals): a warp takes several
// slices at once, so that a lane has a row of each. Slices with the same shared slots go together: each difference of
// columns is read once for all of them, and all their loads are under way before the first product. That is what short rows
// need, whose time is that of a few loads that wait for each other. Other slices are multiplied one by one.
#include <cstddef>

#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/packed_rows.h"

namespace shardmat {
namespace {

using packed::Arguments;

constexpr int kBlock = 128;
using Rows = packed::Shape<1, 1>;

/// Words of a PackedSlice.
enum Word { kValuesWord, kIndicesWord, kDeltasWord, kGroupsWord, kSharedWord, kNarrowWord, kFullWord, kFlagsWord, kWords };
static_assert(kWords * sizeof(std::uint32_t) == sizeof(PackedSlice));
static_assert(offsetof(PackedSlice, deltas) == kDeltasWord * 4 && offsetof(PackedSlice, groups) == kGroupsWord * 4);
static_assert(offsetof(PackedSlice, slots) == kSharedWord * 4 && offsetof(PackedSlice, real) == kFlagsWord * 4);
static_assert(offsetof(PackedSlice, consecutive) == kFlagsWord * 4 + 1 && offsetof(PackedSlice, csr) == kFlagsWord * 4 + 2);
static_assert(offsetof(PackedSlice, late) == kFlagsWord * 4 + 3);
constexpr std::uint32_t kCsrFlag = 0xff0000, kLateFlag = 0xff000000;

/// One slice, as in packed.cu.
template <class T, class Dot>
__device__ void multiply_one(Arguments<T>& a, std::int64_t index, int lane, cuda::DotSum<Dot>& dot) {
  const PackedSlice slice = packed::load_slice(a.slices + index);
  packed::wait_if_late(slice, a.x);
  if (slice.csr) return packed::multiply_rows<Rows>(slice, a, 0, 1, lane, dot);
  const std::int64_t row = packed::first_row<Rows>(slice, a, min(lane, slice.real - 1));
  T acc[1] = {};
  packed::add_slice<Rows, 9>(slice, a, row, lane, 0, 0, 1, acc);
  packed::store_group<Rows>(a, row, lane, lane < slice.real, acc, dot);
}

/// K slices a warp; U slots of each at once.
template <class T, int K, int U, class Dot>
__device__ __forceinline__ void multiply_slices(Arguments<T>& a, cuda::DotSum<Dot>& dot) {
  const int lane = static_cast<int>(threadIdx.x) % kPackedLanes;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x) / kPackedLanes * K;
  if (first >= a.count) return;
  // A lane a word of the K slices.
  const bool exists = lane < K * kWords && first + lane / kWords < a.count;
  const std::uint32_t word = exists ? __ldg(reinterpret_cast<const std::uint32_t*>(a.slices + first) + lane) : 0;
  const auto of = [&](int k, int which) { return __shfl_sync(packed::kAll, word, k * kWords + which); };
  const std::uint32_t of_first = of(0, lane % kWords);
  const int which = lane % kWords;
  const bool alike = which == kDeltasWord || which == kSharedWord ? word == of_first
                     : which == kNarrowWord || which == kFullWord ? word == 0
                     : which == kFlagsWord                        ? (word & kCsrFlag) == 0
                                                                  : true;
  if (!__all_sync(packed::kAll, lane >= K * kWords || (exists && alike))) {
    const int count = static_cast<int>(min(std::int64_t{K}, a.count - first));
    for (int k = 0; k < count; ++k) multiply_one(a, first + k, lane, dot);
    return;
  }
  if (__any_sync(packed::kAll, which == kFlagsWord && (word & kLateFlag) != 0)) cuda::wait_for_previous(a.x);
  std::uint32_t row[K];
  const T* values[K];
  T acc[K] = {};
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const std::uint32_t flags = of(k, kFlagsWord);
    const std::uint32_t at = of(k, kGroupsWord) + min(lane, static_cast<int>(flags & 0xff) - 1);
    row[k] = (flags & 0xff00) != 0 ? at : __ldg(a.order + at);
    values[k] = a.values + std::uint64_t{of(k, kValuesWord)} * (kPackedUnit / sizeof(T)) + lane;
  }
  const int slots = static_cast<int>(of(0, kSharedWord));
  const std::int32_t* deltas = a.deltas + of(0, kDeltasWord);
  for (int s = 0; s < slots; s += U) {
    T value[U][K], of_x[U][K];
    std::int32_t delta[U];
#pragma unroll
    for (int u = 0; u < U; ++u) delta[u] = s + u < slots ? __ldg(deltas + s + u) : 0;
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < K; ++k) value[u][k] = s + u < slots ? __ldcs(values[k] + (s + u) * kPackedLanes) : T(0);
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < K; ++k)
        of_x[u][k] = s + u < slots ? __ldg(a.x + static_cast<std::int32_t>(row[k] + delta[u])) : T(0);
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < K; ++k) acc[k] = fma(value[u][k], of_x[u][k], acc[k]);
  }
#pragma unroll
  for (int k = 0; k < K; ++k)
    if (lane < static_cast<int>(of(k, kFlagsWord) & 0xff)) packed::store(a, row[k], acc[k], dot);
}

template <class T, int K, int U, class Dot>
__global__ void __launch_bounds__(kBlock) packed_stencil(Arguments<T> a, Dot dot) {
  cuda::DotSum<Dot> dot_sum(dot);
  multiply_slices<T, K, U>(a, dot_sum);
  cuda::leave_dot_part(dot_sum, blockIdx.x);
}

std::int64_t blocks_of(const PackedStorage& a, int slices) {
  constexpr int kWarps = kBlock / kPackedLanes;
  return ((a.slices + slices - 1) / slices + kWarps - 1) / kWarps;
}

}  // namespace

std::vector<Policy> packed_stencil_policies(const RowStatistics&) {
  const auto policy = [](int slices, int slots) { return Policy{{"slices", slices}, {"slots", slots}}; };
  return {policy(2, 7), policy(2, 9), policy(4, 5)};
}

bool packed_stencil_supports(const Storage& storage) {
  const auto& packed = static_cast<const PackedStorage&>(storage);
  return packed.shape.block == 1 && packed.shape.lanes == 1;
}

std::unique_ptr<Plan> make_packed_stencil(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int slices = policy.at("slices"), slots = policy.at("slots");
  if (!(slices == 2 && (slots == 7 || slots == 9)) && !(slices == 4 && slots == 5))
    throw Error(ErrorKind::usage, "packed_stencil: slices and slots must be 2 and 7 or 9, or 4 and 5");
  return typed_dot_plan<PackedStorage>(
      std::move(storage), [slices](const PackedStorage& a) { return blocks_of(a, slices); },
      [slices, slots]<class T, class Dot>(const PackedStorage& a, const Operands<T>& v, Dot dot, Stream& on) {
        const auto kernel = slices == 4  ? packed_stencil<T, 4, 5, Dot>
                            : slots == 7 ? packed_stencil<T, 2, 7, Dot>
                                         : packed_stencil<T, 2, 9, Dot>;
        cuda::launch_grid_beside(a.expects_late, kernel, blocks_of(a, slices), 1, kBlock, 0, on, packed::arguments(a, v),
                                 dot);
      });
}

}  // namespace shardmat
