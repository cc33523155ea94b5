// Packed rows on the device: a warp takes a slice, L lanes the rows of a group. V slots are loaded at once, 16 bytes a lane,
// all loads of a few such bundles before their products; nothing is read from memory for the columns of a shared slot, and
// values arrive as whole cache lines. `parts` warps may share a slice when there are too few slices to fill the device;
// their sums meet in shared memory in fixed order. Of two kinds all warps of a block share each slice, because a product
// would wait for them: slices stored as CSR rows, for which one warp takes three times as long as for another, and in small
// matrices those that wait for x, which have to be done soon after it has come.
#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/packed_rows.h"

namespace shardmat {
namespace {

using packed::Arguments;
using packed::kWarps;
using packed::with_shape;

// A larger bound on the block costs up to 20 %: the compiler then holds fewer loads in flight.
constexpr int kBlock = kWarps * kPackedLanes;

/// Blocks a multiprocessor has to hold, 0: as the compiler likes. Blocks of three rows to a lane stream 4 % faster when the
/// compiler does not save registers; three lanes a block and single rows, also tried, lose.
template <class T, class S>
constexpr int kBlocksPerSm = S::B == 3 && S::L == 1 ? sizeof(T) == 4 ? 5 : 1 : 0;

/// The slices that wait, of which each has a block, and the first of these blocks.
struct Late {
  std::int64_t first, count, block;
};

template <class T, class S, int InFlight, class Dot>
__global__ void __launch_bounds__(kBlock, (kBlocksPerSm<T, S>)) packed_spmv(Arguments<T> a, int parts, Late late, Dot dot) {
  cuda::DotSum<Dot> dot_sum(dot);
  __shared__ T sums[kWarps][S::B][kPackedLanes];
  const int warp = static_cast<int>(threadIdx.x) / kPackedLanes, lane = static_cast<int>(threadIdx.x) % kPackedLanes;
  const std::int64_t of_late = blockIdx.x - late.block, passed = of_late >= late.count ? late.count : 0;
  const bool waits = of_late >= 0 && of_late < late.count;
  if (waits) parts = kWarps;
  const int part = warp % parts, slices = kWarps / parts;
  const std::int64_t first = waits ? late.first + of_late : (blockIdx.x - passed) * slices + passed,
                     index = first + warp / parts;
  const bool stored_as_rows = lane < slices && first + lane < a.count && __ldg(&a.slices[first + lane].csr) != 0;
  bool real = false;
  T acc[S::B] = {};
  std::int64_t row = 0;
  if (index < a.count) {
    const PackedSlice slice = packed::load_slice(a.slices + index);
    packed::wait_if_late(slice, a.x);
    if (!slice.csr) {
      // Lanes behind the last group do as the last one does, with values that are zeros, so that their shared columns exist.
      row = packed::first_row<S>(slice, a, min(lane / S::L, slice.real - 1));
      real = lane / S::L < slice.real;
      packed::add_slice<S, InFlight>(slice, a, row, lane, 0, part, parts, acc);
    }
  }
  const unsigned rows = __ballot_sync(packed::kAll, stored_as_rows);
  for (int s = 0; rows >> s != 0; ++s) {
    if ((rows >> s & 1) == 0) continue;
    const PackedSlice slice = packed::load_slice(a.slices + first + s);
    packed::wait_if_late(slice, a.x);
    // Short rows are not enough for all warps.
    packed::multiply_rows<S>(slice, a, (warp + s) % kWarps, kWarps, lane, dot_sum);
  }
  if (parts > 1) {
#pragma unroll
    for (int r = 0; r < S::B; ++r) sums[warp][r][lane] = acc[r];
    __syncthreads();
    if (part == 0)
      for (int other = 1; other < parts; ++other)
#pragma unroll
        for (int r = 0; r < S::B; ++r) acc[r] += sums[warp + other][r][lane];
  }
  if (part == 0) packed::store_group<S>(a, row, lane, real, acc, dot_sum);
  cuda::leave_dot_part(dot_sum, blockIdx.x);
}

std::int64_t blocks_of(const PackedStorage& a, int parts) {
  return ((a.slices - a.late.count) * parts + kWarps - 1) / kWarps + a.late.count;
}

}  // namespace

std::vector<Policy> packed_policies(const RowStatistics&) {
  const auto policy = [](int parts, int in_flight) { return Policy{{"parts", parts}, {"in_flight", in_flight}}; };
  return {policy(1, 14), policy(1, 9), policy(2, 9)};
}

std::unique_ptr<Plan> make_packed(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int parts = policy.at("parts"), in_flight = policy.at("in_flight");
  if (in_flight != 9 && in_flight != 14) throw Error(ErrorKind::usage, "packed: in_flight must be 9 or 14");
  if (parts != 1 && parts != 2 && parts != 4) throw Error(ErrorKind::usage, "packed: parts must be 1, 2 or 4");
  return typed_dot_plan<PackedStorage>(
      std::move(storage), [parts](const PackedStorage& a) { return blocks_of(a, parts); },
      [parts, in_flight]<class T, class Dot>(const PackedStorage& a, const Operands<T>& v, Dot dot, Stream& on) {
        with_shape(a.shape, [&](auto shape) {
          using S = decltype(shape);
          const auto kernel = in_flight == 14 ? packed_spmv<T, S, 14, Dot> : packed_spmv<T, S, 9, Dot>;
          cuda::launch_grid_beside(a.expects_late, kernel, blocks_of(a, parts), 1, kBlock, 0, on, packed::arguments(a, v),
                                   parts, Late{a.late.first, a.late.count, a.late.first * parts / kWarps}, dot);
        });
      });
}

}  // namespace shardmat
