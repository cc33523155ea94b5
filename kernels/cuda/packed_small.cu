// Packed rows on the device, for matrices of few slices, where a warp that took a slice alone would wait for one load after
// another. Several warps share a slice, and yet each row is summed by one lane, in the order of its slots. So a product has
// the bits of those with many right-hand sides. Two ways to share it:
//   staged  A block has a warp for each row of a group. All threads copy values and entries of x into shared memory, some
//           slots at a time, each entry of x once; threads side by side copy neighbouring entries.
//   split   The lanes of a group lie side by side, one for each of its rows, as with lanes = block. A lane loads one entry
//           of x for each slot and has the others from its neighbours.
//   relay   Of single rows: four lanes side by side share a row and load its slots together. The sum goes from lane to lane.
#include <cuda_pipeline.h>

#include <string>

#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/packed_rows.h"

namespace shardmat {
namespace {

using packed::Arguments;
using packed::Bundle;
using packed::with_shape;

constexpr int kMostSlots = 28;  ///< in shared memory: what every GPU has room for

/// The slots of one kind that are in shared memory together: `count`, from slot `first` on.
struct Span {
  int first = 0, count = 0;
};

/// A block's shared memory: values, entries of x and columns of some slots, each as they lie in a slot.
template <class T, class S>
struct Stage {
  static constexpr int kThreads = kPackedLanes * S::B, V = S::template kInterleaved<T>;
  static constexpr int kBytesOfSlot = (S::kValues + kThreads) * static_cast<int>(sizeof(T)) + S::kFullBytes;
  T *values, *of_x;
  char* columns;

  __device__ Stage(void* memory, int most)
      : values(static_cast<T*>(memory)),
        of_x(values + most * S::kValues),
        columns(reinterpret_cast<char*>(of_x + most * kThreads)) {}
  __device__ Stage from(int slot) const {
    Stage later = *this;
    later.values += slot * S::kValues, later.of_x += slot * kThreads, later.columns += slot * S::kFullBytes;
    return later;
  }

  /// Copies `bytes` bytes, rounded up to 16.
  __device__ static void copy(void* to, const void* from, int bytes) {
    for (int i = static_cast<int>(threadIdx.x) * 16; i < bytes; i += kThreads * 16)
      __pipeline_memcpy_async(static_cast<char*>(to) + i, static_cast<const char*>(from) + i, 16);
  }
  /// `of_kind`: the values or the columns of all slots of the kind.
  __device__ void copy_columns(const Span& span, const void* of_kind, int bytes_of_slot) const {
    copy(columns, static_cast<const char*>(of_kind) + static_cast<std::int64_t>(span.first) * bytes_of_slot,
         span.count * bytes_of_slot);
  }
  __device__ void copy_values(const Span& span, const T* of_kind) const {
    copy(values, of_kind + static_cast<std::int64_t>(span.first) * S::kValues,
         span.count * S::kValues * static_cast<int>(sizeof(T)));
  }
  /// `x`: advanced to the thread's column; column_of(k): of slot k of the span, from shared memory.
  template <class ColumnOf>
  __device__ void copy_x(const Span& span, const T* x, const ColumnOf& column_of) const {
#pragma unroll 4
    for (int k = 0; k < span.count; ++k)
      __pipeline_memcpy_async(of_x + k * kThreads + threadIdx.x, x + column_of(k), sizeof(T));
  }

  /// Adds the products of one lane, for row r of its group.
  __device__ void add(const Span& span, int lane, int r, T& acc) const {
    const T* x = of_x + lane * S::B;
    const int bundles = span.count / V;
#pragma unroll 2
    for (int b = 0; b < bundles; ++b) {
      Bundle<T, V> value[S::B];
#pragma unroll
      for (int c = 0; c < S::B; ++c)
        value[c] =
            *reinterpret_cast<const Bundle<T, V>*>(values + ((b * S::kOfLane + c * S::B + r) * kPackedLanes + lane) * V);
#pragma unroll
      for (int s = 0; s < V; ++s)
#pragma unroll
        for (int c = 0; c < S::B; ++c) acc = fma(value[c].of[s], x[(b * V + s) * kThreads + c], acc);
    }
    for (int k = bundles * V; k < span.count; ++k)
#pragma unroll
      for (int c = 0; c < S::B; ++c)
        acc = fma(values[k * S::kValues + (c * S::B + r) * kPackedLanes + lane], x[k * kThreads + c], acc);
  }
};

/// `most`: slots in shared memory at the same time, a multiple of 4, so that copies begin at multiples of 16 bytes.
template <class T, class S, class Dot>
__global__ void __launch_bounds__(kPackedLanes* S::B) packed_staged(Arguments<T> a, int most, Dot dot) {
  using Shared = Stage<T, S>;
  constexpr int V = Shared::V;
  extern __shared__ int4 memory[];
  cuda::DotSum<Dot> dot_sum(dot);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kPackedLanes, r = thread / kPackedLanes;
  const PackedSlice slice = packed::load_slice(a.slices + blockIdx.x);
  packed::wait_if_late(slice, a.x);
  if (slice.csr) {
    packed::multiply_rows<S>(slice, a, r, S::B, lane, dot_sum);
  } else {
    const packed::SlotCounts<S> counts(slice);
    const int group = thread / S::B;  // for which the thread copies x
    const std::int64_t row = packed::first_row<S>(slice, a, min(lane, slice.real - 1));
    const std::int64_t row_of_group = packed::first_row<S>(slice, a, min(group, slice.real - 1));
    const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
    const char* narrow = a.indices + std::uint64_t{slice.indices} * kPackedUnit;
    const T* x = a.x + thread % S::B;
    T acc = 0;
    Span shared_slots, narrow_slots, full_slots;
    for (bool more = true; more;) {
      int room = most;
      more = false;
      const auto advance = [&](Span& span, int kind) {
        const int left = static_cast<int>(slice.slots[kind]) - span.first - span.count;
        span.first += span.count;
        span.count = more ? 0 : left <= room ? left : room / 4 * 4;
        more = more || span.count < left;
        room -= span.count;
      };
      advance(shared_slots, kSharedSlot), advance(narrow_slots, kNarrowSlot), advance(full_slots, kFullSlot);
      const Shared of_shared(memory, most), of_narrow = of_shared.from(shared_slots.count),
                                            of_full = of_narrow.from(narrow_slots.count);
      of_shared.copy_columns(shared_slots, a.deltas + slice.deltas, sizeof(std::int32_t));
      of_narrow.copy_columns(narrow_slots, narrow, S::kNarrowBytes);
      of_full.copy_columns(full_slots, narrow + counts.narrow_bytes(), S::kFullBytes);
      __pipeline_commit();
      of_shared.copy_values(shared_slots, values);
      of_narrow.copy_values(narrow_slots, values + counts.values(kNarrowSlot));
      of_full.copy_values(full_slots, values + counts.values(kFullSlot));
      __pipeline_commit();
      __pipeline_wait_prior(1);  // the columns have arrived
      __syncthreads();
      of_shared.copy_x(shared_slots, x + row_of_group,
                       [&](int k) { return reinterpret_cast<const std::int32_t*>(of_shared.columns)[k]; });
      of_narrow.copy_x(narrow_slots, x, [&](int k) {
        const packed::NarrowPlace at = packed::narrow_place<V>(k, group, S::kNarrowBytes, narrow_slots.count);
        return *reinterpret_cast<const std::int32_t*>(of_narrow.columns + at.base) +
               *reinterpret_cast<const std::uint16_t*>(of_narrow.columns + at.column);
      });
      of_full.copy_x(full_slots, x, [&](int k) {
        return reinterpret_cast<const std::int32_t*>(
            of_full.columns)[packed::interleaved<V>(k, group, S::kIndices, full_slots.count)];
      });
      __pipeline_commit();
      __pipeline_wait_prior(0);
      __syncthreads();
      of_shared.add(shared_slots, lane, r, acc);
      of_narrow.add(narrow_slots, lane, r, acc);
      of_full.add(full_slots, lane, r, acc);
      if (more) __syncthreads();
    }
    if (lane < slice.real) packed::store(a, row + r, acc, dot_sum);
  }
  cuda::leave_dot_part(dot_sum, blockIdx.x);
}

constexpr int kWarps = 4;  ///< of a block of split slices
template <class S>
constexpr int kWarpsOfSlice = S::B == 3 ? 4 : S::B;  ///< with 8 groups of three rows a warp, 8 lanes are idle

/// Adds the products of the slots of one kind, for one lane: row r of its group. `first`: the lane of row 0; `x`: advanced
/// to column r of a piece.
template <class S, class T, class Columns>
__device__ void add_split(int slots, int group, int r, int first, const T* __restrict__ values, const T* __restrict__ x,
                          const Columns& columns, T& acc) {
  constexpr int V = S::template kInterleaved<T>, U = V == 1 ? 8 : sizeof(T) == 4 ? 1 : 2;
  // In f32 the next bundle is on its way while this one is multiplied; in f64 that costs too many registers.
  constexpr bool kAhead = sizeof(T) == 4 && V > 1;
  const int bundles = slots / V, left = slots - bundles * V;
  const T* of_lane = values + group * V;
  const auto of_column = [&](T own, int c) { return __shfl_sync(packed::kAll, own, first + c); };
  struct Asked {
    Bundle<std::int32_t, V> at[U];
    Bundle<T, V> value[U][S::B];
  };
  const auto ask = [&](int b, Asked& to) {
#pragma unroll
    for (int u = 0; u < U; ++u) to.at[u] = b + u < bundles ? columns.bundle(b + u) : Bundle<std::int32_t, V>{};
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int c = 0; c < S::B; ++c)
        to.value[u][c] =
            packed::load_if<V>(b + u < bundles, of_lane + ((b + u) * S::kOfLane + c * S::B + r) * (kPackedLanes * V));
  };
  Asked asked, next;
  if constexpr (kAhead) ask(0, next);
  for (int b = 0; b < bundles; b += U) {
    T own[U][V];
    if constexpr (kAhead) asked = next;
    else ask(b, asked);
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int s = 0; s < V; ++s) own[u][s] = b + u < bundles ? __ldg(x + asked.at[u].of[s]) : T(0);
    if constexpr (kAhead) ask(b + U, next);
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int s = 0; s < V; ++s)
#pragma unroll
        for (int c = 0; c < S::B; ++c) acc = fma(asked.value[u][c].of[s], of_column(own[u][s], c), acc);
  }
  if (V == 1 || left == 0) return;
  values += static_cast<std::int64_t>(bundles) * V * S::kValues + group;
  T own[V], value[V][S::B];
#pragma unroll
  for (int s = 0; s < V - 1; ++s)
    if (s < left) {
      own[s] = __ldg(x + columns.left(bundles * V, s));
#pragma unroll
      for (int c = 0; c < S::B; ++c) value[s][c] = __ldcs(values + (s * S::kOfLane + c * S::B + r) * kPackedLanes);
    }
#pragma unroll
  for (int s = 0; s < V - 1; ++s)
    if (s < left)
#pragma unroll
      for (int c = 0; c < S::B; ++c) acc = fma(value[s][c], of_column(own[s], c), acc);
}

template <class T, class S, class Dot>
__global__ void __launch_bounds__(kWarps* kPackedLanes) packed_split(Arguments<T> a, Dot dot) {
  constexpr int V = S::template kInterleaved<T>, kParts = kWarpsOfSlice<S>, kGroups = kPackedLanes / kParts;
  cuda::DotSum<Dot> dot_sum(dot);
  const int lane = static_cast<int>(threadIdx.x) % kPackedLanes, warp = static_cast<int>(threadIdx.x) / kPackedLanes;
  const int part = warp % kParts;
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * (kWarps / kParts) + warp / kParts;
  if (index < a.count) {
    const PackedSlice slice = packed::load_slice(a.slices + index);
    packed::wait_if_late(slice, a.x);
    if (slice.csr) {
      packed::multiply_rows<S>(slice, a, part, kParts, lane, dot_sum);
    } else {
      // Idle lanes compute the same as the last working lane.
      const int working = min(lane, kGroups * S::B - 1), r = working % S::B, first = working - r;
      const int group = part * kGroups + working / S::B;
      const packed::SlotCounts<S> counts(slice);
      const std::int64_t row = packed::first_row<S>(slice, a, min(group, slice.real - 1));
      const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
      const char* narrow = a.indices + std::uint64_t{slice.indices} * kPackedUnit;
      const auto* full = reinterpret_cast<const std::int32_t*>(narrow + counts.narrow_bytes());
      const T* x = a.x + r;
      T acc = 0;
      if (slice.slots[kSharedSlot] > 0)
        add_split<S>(slice.slots[kSharedSlot], group, r, first, values, x + row,
                     packed::SharedColumns<V>{a.deltas + slice.deltas, 0, 1}, acc);
      if (slice.slots[kNarrowSlot] > 0)
        add_split<S>(slice.slots[kNarrowSlot], group, r, first, values + counts.values(kNarrowSlot), x,
                     packed::NarrowColumns<S, V>{narrow, group}, acc);
      if (slice.slots[kFullSlot] > 0)
        add_split<S>(slice.slots[kFullSlot], group, r, first, values + counts.values(kFullSlot), x,
                     packed::FullColumns<V>{full, group, S::kIndices}, acc);
      if (lane == working && group < slice.real) packed::store(a, row + r, acc, dot_sum);
    }
  }
  cuda::leave_dot_part(dot_sum, blockIdx.x);
}

constexpr int kRelayLanes = 4, kRelaySlots = 4;  ///< lanes of a row; slots of a lane at once

/// Adds the products of a row's slots, `all` of them. Neighbouring lanes share the row: each loads a stretch of slots before
/// its first product. column_of(first, u): where in x the column of slot first + u is. `values`: of the row. Returns the sum
/// in the last of these lanes.
template <class T, class ColumnOf>
__device__ T relay(int all, const T* __restrict__ values, const T* __restrict__ x, const ColumnOf& column_of) {
  constexpr int H = kRelayLanes, U = kRelaySlots;
  const int part = static_cast<int>(threadIdx.x) % H;
  T acc = 0;
  for (int first = 0; first < all; first += H * U) {
    const int each = min(U, (all - first + H - 1) / H), mine = first + part * each, count = min(each, all - mine);
    const T* own = values + mine * kPackedLanes;
    std::int32_t at[U] = {};
    T value[U] = {}, of_x[U] = {};
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (u < count) at[u] = column_of(mine, u);
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (u < count) value[u] = __ldcs(own + u * kPackedLanes);
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (u < count) of_x[u] = __ldg(x + at[u]);
    // In turn t, lane t of the row has the sum of the lanes before it. All lanes compute, so that none waits for others.
    const T before = __shfl_sync(packed::kAll, acc, H - 1, H);
    acc = before;
#pragma unroll
    for (int turn = 0; turn < H; ++turn) {
      if (turn > 0) acc = __shfl_up_sync(packed::kAll, acc, 1, H);
      if (part == 0) acc = before;
#pragma unroll
      for (int u = 0; u < U; ++u)
        if (u < count) acc = fma(value[u], of_x[u], acc);
    }
  }
  return acc;
}

/// A block takes a slice.
template <class T, class S, class Dot>
__global__ void __launch_bounds__(kWarps* kPackedLanes) packed_relay(Arguments<T> a, Dot dot) {
  static_assert(S::B == 1 && kWarps == kRelayLanes);
  cuda::DotSum<Dot> dot_sum(dot);
  const int lane = static_cast<int>(threadIdx.x) % kPackedLanes, warp = static_cast<int>(threadIdx.x) / kPackedLanes;
  const PackedSlice slice = packed::load_slice(a.slices + blockIdx.x);
  packed::wait_if_late(slice, a.x);
  if (slice.csr) {
    packed::multiply_rows<S>(slice, a, warp, kWarps, lane, dot_sum);
  } else {
    const int group = static_cast<int>(threadIdx.x) / kRelayLanes;
    const int shared = static_cast<int>(slice.slots[kSharedSlot]), near = static_cast<int>(slice.slots[kNarrowSlot]),
              far = static_cast<int>(slice.slots[kFullSlot]);
    const std::int64_t row = packed::first_row<S>(slice, a, min(group, slice.real - 1));
    const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T)) + group;
    const char* narrow = a.indices + std::uint64_t{slice.indices} * kPackedUnit;
    const std::int32_t* deltas = a.deltas + slice.deltas;
    const auto of_narrow = [&](const char* slot) {
      return __ldg(reinterpret_cast<const std::int32_t*>(slot)) +
             __ldcs(reinterpret_cast<const std::uint16_t*>(slot + 4) + group);
    };
    T acc;
    if (near + far == 0) {
      acc = relay(shared, values, a.x + row, [&](int first, int u) { return __ldg(deltas + first + u); });
    } else if (shared + far == 0) {
      acc = relay(near, values, a.x,
                  [&](int first, int u) { return of_narrow(narrow + first * S::kNarrowBytes + u * S::kNarrowBytes); });
    } else {
      const packed::SlotCounts<S> counts(slice);
      const auto* full = reinterpret_cast<const std::int32_t*>(narrow + counts.narrow_bytes()) + group;
      acc = relay(shared + near + far, values, a.x, [&](int first, int u) {
        const int k = first + u, of_near = k - shared;
        if (k < shared) return static_cast<std::int32_t>(row) + __ldg(deltas + k);
        return of_near < near ? of_narrow(narrow + of_near * S::kNarrowBytes)
                              : __ldg(full + (of_near - near) * kPackedLanes);
      });
    }
    const bool is_last = static_cast<int>(threadIdx.x) % kRelayLanes == kRelayLanes - 1;
    if (is_last && group < slice.real) packed::store(a, row, acc, dot_sum);
  }
  cuda::leave_dot_part(dot_sum, blockIdx.x);
}

/// Slices of a block of split slices.
int slices_of_split_block(const PackedShape& shape) { return kWarps / (shape.block == 3 ? 4 : shape.block); }

std::int64_t blocks_of(const PackedStorage& a, int slots) {
  const int slices = slots > 0 || a.shape.block == 1 ? 1 : slices_of_split_block(a.shape);
  return (a.slices + slices - 1) / slices;
}

}  // namespace

std::vector<Policy> packed_small_policies(const RowStatistics&) {
  return {Policy{{"slots", 0}}, Policy{{"slots", 8}}, Policy{{"slots", 12}}};
}

bool packed_small_supports(const Storage& storage) { return static_cast<const PackedStorage&>(storage).shape.lanes == 1; }

std::unique_ptr<Plan> make_packed_small(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int slots = policy.at("slots");
  if (slots < 0 || slots > kMostSlots || slots % 4 != 0)
    throw Error(ErrorKind::usage, "packed_small: slots must be a multiple of 4 up to " + std::to_string(kMostSlots) +
                                      ", or 0 (nothing in shared memory)");
  return typed_dot_plan<PackedStorage>(
      std::move(storage), [slots](const PackedStorage& a) { return blocks_of(a, slots); },
      [slots]<class T, class Dot>(const PackedStorage& a, const Operands<T>& v, Dot dot, Stream& on) {
        with_shape(a.shape, [&](auto shape) {
          using S = decltype(shape);
          if constexpr (S::L == 1) {
            const std::int64_t blocks = blocks_of(a, slots);
            const auto arguments = packed::arguments(a, v);
            if (slots == 0) {
              const auto kernel = [] {
                if constexpr (S::B == 1) return packed_relay<T, S, Dot>;
                else return packed_split<T, S, Dot>;
              }();
              cuda::launch_grid_beside(a.expects_late, kernel, blocks, 1, kWarps * kPackedLanes, 0, on, arguments, dot);
            } else {
              const auto kernel = packed_staged<T, S, Dot>;
              const auto bytes = static_cast<std::size_t>(slots * Stage<T, S>::kBytesOfSlot);
              cuda::allow_shared_memory(kernel, bytes, on.device());
              cuda::launch_grid_beside(a.expects_late, kernel, blocks, 1, Stage<T, S>::kThreads, bytes, on, arguments, slots,
                                       dot);
            }
          }
        });
      });
}

}  // namespace shardmat
