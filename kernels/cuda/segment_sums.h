// What a warp does with the sums of its lanes, each of which has added some neighbouring nonzeros of a sequence
// (segments.h). A sum is a number, or a dense::Wide of numbers: one for each right-hand side.
#pragma once

#include "kernels/cuda/dense_rows.h"

namespace shardmat::cuda {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kLanesOfGroup = 8, kGroupsOfWarp = 4;

/// Calls f(a number of `sum`, that of `other`) for each right-hand side.
template <class T, class F>
__device__ void for_each(T& sum, const T& other, const F& f) {
  f(sum, other);
}
template <class T, int W, class F>
__device__ void for_each(dense::Wide<T, W>& sum, const dense::Wide<T, W>& other, const F& f) {
#pragma unroll
  for (int w = 0; w < W; ++w) f(sum.of[w], other.of[w]);
}
template <class V>
__device__ V plus(V sum, const V& other) {
  for_each(sum, other, [](auto& a, auto b) { a += b; });
  return sum;
}
/// The sum of the lane below.
template <class V>
__device__ V of_lane_below(const V& sum) {
  V below;
  for_each(below, sum, [](auto& a, auto b) { a = __shfl_up_sync(kAllLanes, b, 1); });
  return below;
}
template <class V>
__device__ V of_lane(const V& sum, int lane) {
  V its;
  for_each(its, sum, [&](auto& a, auto b) { a = __shfl_sync(kAllLanes, b, lane); });
  return its;
}

/// The sums of a lane over the nonzeros of its segments that belong to one row.
template <class V>
struct LaneSums {
  static constexpr int kSegments = 2;
  V of[kSegments] = {};

  /// Adds them to `before`, from the first to the last.
  __device__ V behind(V before) const {
#pragma unroll
    for (const V& segment : of) before = plus(before, segment);
    return before;
  }
};

/// What is open before a lane is entered, and behind the last lane.
template <class V>
struct Open {
  V in_groups;  ///< the row's sum over whole groups before that of this lane
  V in_lanes;   ///< over the lanes of the group below this one
  bool began_before_group;
  V behind;
};

/// Joins the lanes' last sums, by groups: over the segments of a group from the first to the last, then over the groups
/// likewise. csr_balanced_spmm.cu adds in the same order. `has_flags`: a row begins in the lane; `open`: of the row open
/// before the warp.
template <class V>
__device__ Open<V> join_lanes(int lane, bool has_flags, const LaneSums<V>& sums, const V& open) {
  const unsigned flags = __ballot_sync(kAllLanes, has_flags), below = flags & kAllLanes >> (31 - lane);
  const int group = lane / kLanesOfGroup, first = group * kLanesOfGroup;
  const int from = max(first, below == 0 ? 0 : 31 - __clz(static_cast<int>(below)));
  const int distance = lane - from, longest = __reduce_max_sync(kAllLanes, distance);
  V sum = sums.behind(V{});
  for (int d = 1; d <= longest; ++d) {
    const V other = of_lane_below(sum);
    if (distance == d) sum = sums.behind(other);
  }
  Open<V> joined{open, of_lane_below(sum), true, open};
  if (lane == first) joined.in_lanes = V{};
  joined.began_before_group = (flags & ((1u << lane) - 1) & (0xffu << first)) == 0;
#pragma unroll
  for (int g = 0; g < kGroupsOfWarp; ++g) {
    const V last = of_lane(sum, g * kLanesOfGroup + kLanesOfGroup - 1);
    if (g == group) joined.in_groups = joined.behind;
    joined.behind = (flags >> (g * kLanesOfGroup) & 0xffu) != 0 ? last : plus(joined.behind, last);
  }
  return joined;
}

/// The sum over the lanes below and this one.
__device__ inline int scan(int lane, int sum) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const int other = __shfl_up_sync(kAllLanes, sum, offset);
    if (lane >= offset) sum += other;
  }
  return sum;
}

}  // namespace shardmat::cuda
