// Shared code of the kernels of packed rows: their arguments, the products of one slice (stored as slots or as CSR rows),
// and writing sums to y.
#pragma once

#include "kernels/cuda/dot_sums.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/packed_pieces.h"
#include "kernels/typed_plan.h"

namespace shardmat::packed {

constexpr unsigned kAll = 0xffffffffu;  ///< lanes of a warp
constexpr int kWarps = 4;  ///< warps of a block, for one right-hand side; late slices begin at a multiple of this number

template <class T>
struct Arguments {
  const PackedSlice* __restrict__ slices;
  const std::uint32_t* __restrict__ order;
  const std::int32_t* __restrict__ deltas;
  const char* __restrict__ indices;
  const T* __restrict__ values;
  std::int64_t count, rows;
  int shift;
  T alpha, beta;
  const T* x;
  T* __restrict__ y;
};

template <class T>
Arguments<T> arguments(const PackedStorage& a, const Operands<T>& v) {
  return {a.slice.as<PackedSlice>(),
          a.order.as<std::uint32_t>(),
          a.deltas.as<std::int32_t>(),
          a.indices.as<char>(),
          a.values.as<T>(),
          a.slices,
          a.rows,
          a.shape.shift,
          v.alpha,
          v.beta,
          v.x,
          v.y};
}

/// V neighbouring entries, loaded at once: 16 bytes of values, 4·V of deltas, 2·V of narrow columns.
template <class E, int V>
struct alignas(sizeof(E) * V) Bundle {
  E of[V];
};

/// V values, or zeros. Bundles are loaded in a fixed order: otherwise the compiler delays some loads until others have
/// arrived, to save registers. Single values are faster without a fixed order.
template <int V>
__device__ Bundle<double, V> load_if(bool there, const double* p) {
  if constexpr (V == 1) {
    return {{there ? __ldcs(p) : 0.0}};
  } else {
    Bundle<double, V> v;
    asm volatile(
        "{.reg .pred q; setp.ne.s32 q, %3, 0; mov.f64 %0, 0d0000000000000000; mov.f64 %1, 0d0000000000000000;"
        "@q ld.global.cs.v2.f64 {%0, %1}, [%2];}"
        : "=d"(v.of[0]), "=d"(v.of[1])
        : "l"(p), "r"(static_cast<int>(there)));
    return v;
  }
}
template <int V>
__device__ Bundle<float, V> load_if(bool there, const float* p) {
  if constexpr (V == 1) {
    return {{there ? __ldcs(p) : 0.0f}};
  } else {
    Bundle<float, V> v;
    asm volatile(
        "{.reg .pred q; setp.ne.s32 q, %5, 0; mov.f32 %0, 0f00000000; mov.f32 %1, 0f00000000;"
        "mov.f32 %2, 0f00000000; mov.f32 %3, 0f00000000; @q ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4];}"
        : "=f"(v.of[0]), "=f"(v.of[1]), "=f"(v.of[2]), "=f"(v.of[3])
        : "l"(p), "r"(static_cast<int>(there)));
    return v;
  }
}
template <int V>
__device__ Bundle<std::int32_t, V> load(const std::int32_t* p) {
  if constexpr (V == 4) {
    const int4 v = __ldg(reinterpret_cast<const int4*>(p));
    return {{v.x, v.y, v.z, v.w}};
  } else if constexpr (V == 2) {
    const int2 v = __ldg(reinterpret_cast<const int2*>(p));
    return {{v.x, v.y}};
  } else {
    return {{__ldg(p)}};
  }
}
template <int V>
__device__ Bundle<std::uint16_t, V> load(const std::uint16_t* p) {
  if constexpr (V == 4) {
    const ushort4 v = __ldcs(reinterpret_cast<const ushort4*>(p));
    return {{v.x, v.y, v.z, v.w}};
  } else if constexpr (V == 2) {
    const ushort2 v = __ldcs(reinterpret_cast<const ushort2*>(p));
    return {{v.x, v.y}};
  } else {
    return {{__ldcs(p)}};
  }
}

/// Columns of a lane in the slots of one kind: bundles of V slots, then single slots.
template <int V>
struct SharedColumns {
  const std::int32_t* deltas;
  int piece, pieces;
  __device__ Bundle<std::int32_t, V> bundle(int b) const { return load<V>(deltas + (b * pieces + piece) * V); }
  __device__ std::int32_t left(int first, int k) const { return __ldg(deltas + first * pieces + k * pieces + piece); }
};
template <class S, int V>
struct NarrowColumns {
  const char* slots;
  int index;
  __device__ static std::int32_t base(const char* at) { return __ldcs(reinterpret_cast<const std::int32_t*>(at)); }
  __device__ Bundle<std::int32_t, V> bundle(int b) const {
    const char* at = slots + b * (V * S::kNarrowBytes);
    Bundle<std::int32_t, V> columns = load<V>(reinterpret_cast<const std::int32_t*>(at));
    const Bundle<std::uint16_t, V> more = load<V>(reinterpret_cast<const std::uint16_t*>(at + 4 * V) + index * V);
#pragma unroll
    for (int s = 0; s < V; ++s) columns.of[s] += more.of[s];
    return columns;
  }
  __device__ std::int32_t left(int first, int k) const {
    const char* at = slots + (first + k) * S::kNarrowBytes;
    return base(at) + __ldcs(reinterpret_cast<const std::uint16_t*>(at + 4) + index);
  }
};
template <int V>
struct FullColumns {
  const std::int32_t* columns;
  int index, indices;
  __device__ Bundle<std::int32_t, V> bundle(int b) const { return load<V>(columns + (b * indices + index) * V); }
  __device__ std::int32_t left(int first, int k) const { return __ldg(columns + first * indices + k * indices + index); }
};

/// Adds the products of the slots of one kind to acc, for one lane: rows first … first + R - 1 of its group. `values`: the
/// values of this kind; `x`: advanced to the lane's column. fma() by name: the compiler does not always contract.
template <class S, int InFlight, int R, class T, class Columns>
__device__ void add_slots(int slots, int first, int part, int parts, int lane, const T* __restrict__ values,
                          const T* __restrict__ x, const Columns& columns, T (&acc)[R]) {
  constexpr int V = S::template kInterleaved<T>, N = S::kColumns * R, U = InFlight > V * N ? InFlight / (V * N) : 1;
  // Gathers all entries before the first product. Bundles of single rows do not: the registers would cost too many warps.
  constexpr bool kGatherFirst = V == 1 || S::B > 1;
  const auto place = [&](int i) { return R == S::B ? i : i / R * S::B + first + i % R; };
  const int bundles = slots / V, left = slots - bundles * V;
  const T* of_lane = values + lane * V;
  for (int b = part * U; b < bundles; b += parts * U) {
    Bundle<std::int32_t, V> at[U];
    Bundle<T, V> value[U][N];
#pragma unroll
    for (int u = 0; u < U; ++u) at[u] = b + u < bundles ? columns.bundle(b + u) : Bundle<std::int32_t, V>{};
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int i = 0; i < N; ++i)
        value[u][i] = load_if<V>(b + u < bundles, of_lane + ((b + u) * S::kOfLane + place(i)) * (S::kLanes * V));
    if constexpr (kGatherFirst) {
      T of_x[U][V][S::kColumns];
#pragma unroll
      for (int u = 0; u < U; ++u)
#pragma unroll
        for (int s = 0; s < V; ++s)
#pragma unroll
          for (int c = 0; c < S::kColumns; ++c) of_x[u][s][c] = b + u < bundles ? __ldg(x + at[u].of[s] + c) : T(0);
#pragma unroll
      for (int u = 0; u < U; ++u)
#pragma unroll
        for (int s = 0; s < V; ++s)
#pragma unroll
          for (int c = 0; c < S::kColumns; ++c)
#pragma unroll
            for (int r = 0; r < R; ++r) acc[r] = fma(value[u][c * R + r].of[s], of_x[u][s][c], acc[r]);
    } else {
#pragma unroll
      for (int u = 0; u < U; ++u)
        if (b + u < bundles)
#pragma unroll
          for (int s = 0; s < V; ++s)
#pragma unroll
            for (int c = 0; c < S::kColumns; ++c) {
              const T of_x = __ldg(x + at[u].of[s] + c);
#pragma unroll
              for (int r = 0; r < R; ++r) acc[r] = fma(value[u][c * R + r].of[s], of_x, acc[r]);
            }
    }
  }
  if (V == 1 || part != 0 || left == 0) return;
  values += static_cast<std::int64_t>(bundles) * V * S::kValues + lane;
  std::int32_t at[V];
  T value[V][N];
#pragma unroll
  for (int s = 0; s < V - 1; ++s)
    if (s < left) {
      at[s] = columns.left(bundles * V, s);
#pragma unroll
      for (int i = 0; i < N; ++i) value[s][i] = __ldcs(values + (s * S::kOfLane + place(i)) * S::kLanes);
    }
#pragma unroll
  for (int s = 0; s < V - 1; ++s)
    if (s < left)
#pragma unroll
      for (int c = 0; c < S::kColumns; ++c) {
        const T of_x = __ldg(x + at[s] + c);
#pragma unroll
        for (int r = 0; r < R; ++r) acc[r] = fma(value[s][c * R + r], of_x, acc[r]);
      }
}

/// Adds the products of a slice's slots: shared, narrow, full, for R rows of each group from `first` on. `row`: first row of
/// this lane's group.
template <class S, int InFlight, int R, class T>
__device__ void add_slice(const PackedSlice& slice, const Arguments<T>& a, std::int64_t row, int in_warp, int first,
                          int part, int parts, T (&acc)[R]) {
  constexpr int V = S::template kInterleaved<T>;
  const SlotCounts<S> counts(slice);
  const int lane =
      in_warp < S::kLanes ? in_warp : S::kLanes - 1;  // idle lanes (L = 3, 6) compute the same as the last working lane
  const int index = lane / S::kLanesOfPiece;
  const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
  const char* narrow = a.indices + std::uint64_t{slice.indices} * kPackedUnit;
  const auto* full = reinterpret_cast<const std::int32_t*>(narrow + counts.narrow_bytes());
  const std::int32_t* deltas = a.deltas + slice.deltas;
  const T* x = a.x + lane % S::kLanesOfPiece * S::kColumns;
  if (slice.slots[kSharedSlot] > 0)
    add_slots<S, InFlight>(slice.slots[kSharedSlot], first, part, parts, lane, values, x + row,
                           SharedColumns<V>{deltas, index % S::kPieces, S::kPieces}, acc);
  if (slice.slots[kNarrowSlot] > 0)
    add_slots<S, InFlight>(slice.slots[kNarrowSlot], first, part, parts, lane, values + counts.values(kNarrowSlot), x,
                           NarrowColumns<S, V>{narrow, index}, acc);
  if (slice.slots[kFullSlot] > 0)
    add_slots<S, InFlight>(slice.slots[kFullSlot], first, part, parts, lane, values + counts.values(kFullSlot), x,
                           FullColumns<V>{full, index, S::kIndices}, acc);
}

/// Computes y of one row from its sum.
template <class T, class Dot>
__device__ void store(const Arguments<T>& a, std::int64_t row, T sum, cuda::DotSum<Dot>& dot) {
  if (row < 0 || row >= a.rows) return;
  const T product = a.alpha * sum, y = a.beta == T(0) ? product : fma(a.beta, a.y[row], product);
  a.y[row] = y;
  dot.add(row, y);
}

/// Loads the header of a slice: 32 bytes in two loads that all lanes share.
__device__ inline PackedSlice load_slice(const PackedSlice* from) {
  PackedSlice slice;
  *reinterpret_cast<int4*>(&slice) = __ldg(reinterpret_cast<const int4*>(from));
  *(reinterpret_cast<int4*>(&slice) + 1) = __ldg(reinterpret_cast<const int4*>(from) + 1);
  return slice;
}

/// Waits for the previous kernel if the slice reads late entries of x. Call it before the slice is multiplied.
template <class X>
__device__ void wait_if_late(const PackedSlice& slice, const X*& x) {
  if (slice.late) cuda::wait_for_previous(x);
}

/// First row of a group; `group` is its number within the slice.
template <class S, class T>
__device__ std::int64_t first_row(const PackedSlice& slice, const Arguments<T>& a, int group) {
  const std::uint32_t at = slice.groups + group;
  return static_cast<std::int64_t>(slice.consecutive ? at : __ldg(a.order + at)) * S::B - a.shift;
}

/// Lanes for a row of a slice stored as CSR rows: more if the rows are long. Each adds a stretch of the row; the sums of the
/// stretches are added from the first to the last, in products with many right-hand sides, too.
template <class S>
__device__ int lanes_of_csr_row(const std::int32_t* offsets) {
  constexpr int kRows = S::kGroups * S::B;
  return __ldg(offsets + kRows) >= 12 * kRows ? 8 : 2;
}
__device__ inline std::int32_t stretch_of_csr_row(std::int32_t nonzeros, int lanes) {
  return (nonzeros + lanes - 1) / lanes;
}

/// Multiplies a slice stored as CSR rows, or part `part` of `parts` of it. `Threads` lanes share a row.
template <class S, int Threads, class T, class Dot>
__device__ void multiply_rows_with(const PackedSlice& slice, const Arguments<T>& a, int part, int parts, int lane,
                                   cuda::DotSum<Dot>& dot) {
  constexpr int kUnroll = 8;
  const std::int32_t* offsets = a.deltas + slice.deltas;
  const auto* columns = reinterpret_cast<const std::int32_t*>(a.indices + std::uint64_t{slice.indices} * kPackedUnit);
  const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
  for (int first = part * (kPackedLanes / Threads); first < slice.real * S::B; first += parts * (kPackedLanes / Threads)) {
    const int i = first + lane / Threads;
    const bool inside = i < slice.real * S::B;
    const std::int32_t begin = inside ? __ldg(offsets + i) : 0, end = inside ? __ldg(offsets + i + 1) : 0;
    const std::int32_t stretch = stretch_of_csr_row(end - begin, Threads);
    const std::int32_t mine = begin + lane % Threads * stretch, my_end = min(mine + stretch, end);
    T of_lane = 0;
    for (std::int32_t k = mine; k < my_end; k += kUnroll) {
      std::int32_t at[kUnroll];
      T value[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const bool here = k + u < my_end;
        at[u] = here ? __ldg(columns + k + u) : -1;
        value[u] = here ? __ldg(values + k + u) : T(0);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (at[u] >= 0) of_lane = fma(value[u], __ldg(a.x + at[u]), of_lane);
    }
    T sum = T(0) + of_lane;
#pragma unroll
    for (int other = 1; other < Threads; ++other) sum += __shfl_down_sync(kAll, of_lane, other, Threads);
    if (inside && lane % Threads == 0) store(a, first_row<S>(slice, a, i / S::B) + i % S::B, sum, dot);
  }
}

template <class S, class T, class Dot>
__device__ void multiply_rows(const PackedSlice& slice, const Arguments<T>& a, int part, int parts, int lane,
                              cuda::DotSum<Dot>& dot) {
  if (lanes_of_csr_row<S>(a.deltas + slice.deltas) == 8) multiply_rows_with<S, 8>(slice, a, part, parts, lane, dot);
  else multiply_rows_with<S, 2>(slice, a, part, parts, lane, dot);
}

/// Sum over the L lanes of a group, in its first lane.
template <int L, class T>
__device__ T sum_of_group(T mine) {
  T sum = mine;
  if constexpr ((L & (L - 1)) == 0) {
#pragma unroll
    for (int offset = L / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(kAll, sum, offset, L);
  } else {
#pragma unroll
    for (int other = 1; other < L; ++other) sum += __shfl_down_sync(kAll, mine, other);
  }
  return sum;
}

/// Sums a group's rows over its lanes and writes them to y.
template <class S, class T, class Dot>
__device__ void store_group(const Arguments<T>& a, std::int64_t row, int lane, bool real, T (&acc)[S::B],
                            cuda::DotSum<Dot>& dot) {
  if constexpr (S::L == 1) {
#pragma unroll
    for (int r = 0; r < S::B; ++r)
      if (real) store(a, row + r, acc[r], dot);
  } else {
    const int group = min(lane / S::L, S::kGroups - 1);
    T mine = 0;
#pragma unroll
    for (int r = 0; r < S::B; ++r) {
      const T sum = __shfl_sync(kAll, sum_of_group<S::L>(acc[r]), group * S::L);
      if (lane % S::L == r) mine = sum;
    }
    if (real && lane % S::L < S::B) store(a, row + lane % S::L, mine, dot);
  }
}

}  // namespace shardmat::packed
