// Packed rows on the device: a warp takes a slice, L lanes the rows of a group. V slots are loaded at once, 16 bytes a lane,
// all loads of a few such bundles before their products; nothing is read from memory for the columns of a shared slot, and
// values arrive as whole cache lines. `parts` warps may share a slice when there are too few slices to fill the device;
// their sums meet in shared memory in fixed order.
#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/packed_pieces.h"

namespace shardmat {
namespace {

using packed::SlotCounts;
using packed::with_shape;

constexpr int kBlock = 128;  // a larger bound on the block costs up to 20 %: the compiler then holds fewer loads in flight
constexpr int kWarps = kBlock / kPackedLanes;
constexpr unsigned kAll = 0xffffffffu;

template <class T>
struct Arguments {
  const PackedSlice* __restrict__ slices;
  const std::uint32_t* __restrict__ order;
  const std::int32_t* __restrict__ deltas;
  const char* __restrict__ indices;
  const T* __restrict__ values;
  std::int64_t count, rows;
  int shift, parts;
  T alpha, beta;
  const T* __restrict__ x;
  T* __restrict__ y;
};

/// V neighbouring entries, loaded at once: 16 bytes of values, 4·V of deltas, 2·V of narrow columns. They are read once, so
/// they leave the caches first.
template <class E, int V>
struct alignas(sizeof(E) * V) Bundle {
  E of[V];
};
template <int V, class T>
__device__ Bundle<T, V> load(const T* p) {
  if constexpr (V == 1) {
    return {{__ldcs(p)}};
  } else if constexpr (sizeof(T) == 8) {
    const double2 v = __ldcs(reinterpret_cast<const double2*>(p));
    return {{v.x, v.y}};
  } else {
    const float4 v = __ldcs(reinterpret_cast<const float4*>(p));
    return {{v.x, v.y, v.z, v.w}};
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

/// Columns of a lane in the slots of one kind: bundles of V, and the slots that are left.
template <int V>
struct SharedColumns {
  const std::int32_t* deltas;
  int piece, pieces;
  __device__ Bundle<std::int32_t, V> bundle(int b) const { return load<V>(deltas + (b * pieces + piece) * V); }
  __device__ std::int32_t left(int first, int k) const { return __ldg(deltas + first * pieces + k * pieces + piece); }
};
template <int V>
struct NarrowColumns {
  const std::int32_t* bases;
  const std::uint16_t* columns;
  int index, indices;
  __device__ Bundle<std::int32_t, V> bundle(int b) const {
    Bundle<std::int32_t, V> at = load<V>(bases + b * V);
    const Bundle<std::uint16_t, V> more = load<V>(columns + (b * indices + index) * V);
#pragma unroll
    for (int s = 0; s < V; ++s) at.of[s] += more.of[s];
    return at;
  }
  __device__ std::int32_t left(int first, int k) const {
    return __ldg(bases + first + k) + __ldcs(columns + first * indices + k * indices + index);
  }
};
template <int V>
struct FullColumns {
  const std::int32_t* columns;
  int index, indices;
  __device__ Bundle<std::int32_t, V> bundle(int b) const { return load<V>(columns + (b * indices + index) * V); }
  __device__ std::int32_t left(int first, int k) const { return __ldg(columns + first * indices + k * indices + index); }
};

/// Adds the products of the slots of one kind to acc, for one lane. `values` are the kind's; `x` is moved to the lane's
/// column.
template <class S, int InFlight, class T, class Columns>
__device__ void add_slots(int slots, int part, int parts, int lane, const T* __restrict__ values, const T* __restrict__ x,
                          const Columns& columns, T (&acc)[S::B]) {
  constexpr int V = S::template kInterleaved<T>, N = S::kOfLane, U = InFlight > V * N ? InFlight / (V * N) : 1;
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
        value[u][i] = b + u < bundles ? load<V>(of_lane + ((b + u) * N + i) * (S::kLanes * V)) : Bundle<T, V>{};
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (b + u < bundles)
#pragma unroll
        for (int s = 0; s < V; ++s)
#pragma unroll
          for (int c = 0; c < S::kColumns; ++c) {
            const T of_x = __ldg(x + at[u].of[s] + c);
#pragma unroll
            for (int r = 0; r < S::B; ++r) acc[r] += value[u][c * S::B + r].of[s] * of_x;
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
      for (int i = 0; i < N; ++i) value[s][i] = __ldcs(values + (s * N + i) * S::kLanes);
    }
#pragma unroll
  for (int s = 0; s < V - 1; ++s)
    if (s < left)
#pragma unroll
      for (int c = 0; c < S::kColumns; ++c) {
        const T of_x = __ldg(x + at[s] + c);
#pragma unroll
        for (int r = 0; r < S::B; ++r) acc[r] += value[s][c * S::B + r] * of_x;
      }
}

/// Adds the products of a slice's slots: shared, narrow, full. `row` is the first of this lane's group.
template <class S, int InFlight, class T>
__device__ void add_slice(const PackedSlice& slice, const Arguments<T>& a, std::int64_t row, int in_warp, int part,
                          T (&acc)[S::B]) {
  constexpr int V = S::template kInterleaved<T>;
  const SlotCounts<S> counts(slice);
  const int lane =
      in_warp < S::kLanes ? in_warp : S::kLanes - 1;  // lanes that do not work (L = 3, 6) do as the last one does
  const int index = lane / S::kLanesOfPiece;
  const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
  const char* indices = a.indices + std::uint64_t{slice.indices} * kPackedUnit;
  const std::int32_t* deltas = a.deltas + slice.deltas;
  const T* x = a.x + lane % S::kLanesOfPiece * S::kColumns;
  if (slice.slots[kSharedSlot] > 0)
    add_slots<S, InFlight>(slice.slots[kSharedSlot], part, a.parts, lane, values, x + row,
                           SharedColumns<V>{deltas, index % S::kPieces, S::kPieces}, acc);
  if (slice.slots[kNarrowSlot] > 0)
    add_slots<S, InFlight>(
        slice.slots[kNarrowSlot], part, a.parts, lane, values + counts.values(kNarrowSlot), x,
        NarrowColumns<V>{deltas + counts.shared_deltas(),
                         reinterpret_cast<const std::uint16_t*>(indices + counts.full_bytes()), index, S::kIndices},
        acc);
  if (slice.slots[kFullSlot] > 0)
    add_slots<S, InFlight>(slice.slots[kFullSlot], part, a.parts, lane, values + counts.values(kFullSlot), x,
                           FullColumns<V>{reinterpret_cast<const std::int32_t*>(indices), index, S::kIndices}, acc);
}

/// y of one row.
template <class T>
__device__ void store(const Arguments<T>& a, std::int64_t row, T sum) {
  if (row < 0 || row >= a.rows) return;
  const T product = a.alpha * sum;
  a.y[row] = a.beta == T(0) ? product : product + a.beta * a.y[row];
}

/// First row of the group at a place in a slice.
template <class S, class T>
__device__ std::int64_t first_row(const PackedSlice& slice, const Arguments<T>& a, int group) {
  const std::uint32_t at = slice.groups + group;
  return static_cast<std::int64_t>(slice.consecutive ? at : __ldg(a.order + at)) * S::B - a.shift;
}

/// A slice stored as CSR rows: `Threads` lanes share a row.
template <class S, int Threads, class T>
__device__ void multiply_rows(const PackedSlice& slice, const Arguments<T>& a, int part, int lane) {
  constexpr int kUnroll = 4;
  const std::int32_t* offsets = a.deltas + slice.deltas;
  const auto* columns = reinterpret_cast<const std::int32_t*>(a.indices + std::uint64_t{slice.indices} * kPackedUnit);
  const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
  for (int first = part * (kPackedLanes / Threads); first < slice.real * S::B; first += a.parts * (kPackedLanes / Threads)) {
    const int i = first + lane / Threads;
    const bool inside = i < slice.real * S::B;
    const std::int32_t end = inside ? __ldg(offsets + i + 1) : 0;
    T sum = 0;
    for (std::int32_t k = (inside ? __ldg(offsets + i) : 0) + lane % Threads; k < end; k += kUnroll * Threads) {
      std::int32_t at[kUnroll];
      T value[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const bool here = k + u * Threads < end;
        at[u] = here ? __ldg(columns + k + u * Threads) : -1;
        value[u] = here ? __ldg(values + k + u * Threads) : T(0);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (at[u] >= 0) sum += value[u] * __ldg(a.x + at[u]);
    }
#pragma unroll
    for (int offset = Threads / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
    if (inside && lane % Threads == 0) store(a, first_row<S>(slice, a, i / S::B) + i % S::B, sum);
  }
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

/// Sums of a group's rows out of its lanes and into y.
template <class S, class T>
__device__ void store_group(const Arguments<T>& a, std::int64_t row, int lane, bool real, T (&acc)[S::B]) {
  if constexpr (S::L == 1) {
#pragma unroll
    for (int r = 0; r < S::B; ++r)
      if (real) store(a, row + r, acc[r]);
  } else {
    const int group = min(lane / S::L, S::kGroups - 1);
    T mine = 0;
#pragma unroll
    for (int r = 0; r < S::B; ++r) {
      const T sum = __shfl_sync(kAll, sum_of_group<S::L>(acc[r]), group * S::L);
      if (lane % S::L == r) mine = sum;
    }
    if (real && lane % S::L < S::B) store(a, row + lane % S::L, mine);
  }
}

template <class T, class S, int InFlight>
__global__ void __launch_bounds__(kBlock) packed_spmv(const Arguments<T> a) {
  __shared__ T sums[kWarps][S::B][kPackedLanes];
  const int warp = static_cast<int>(threadIdx.x) / kPackedLanes, lane = static_cast<int>(threadIdx.x) % kPackedLanes;
  const int part = warp % a.parts;
  const std::int64_t index = (static_cast<std::int64_t>(blockIdx.x) * kWarps + warp) / a.parts;
  bool real = false;
  T acc[S::B] = {};
  std::int64_t row = 0;
  if (index < a.count) {
    PackedSlice slice;
    *reinterpret_cast<int4*>(&slice) = __ldg(reinterpret_cast<const int4*>(a.slices + index));
    *(reinterpret_cast<int4*>(&slice) + 1) = __ldg(reinterpret_cast<const int4*>(a.slices + index) + 1);
    if (!slice.csr) {
      // Lanes behind the last group do as the last one does, with values that are zeros, so that their shared columns exist.
      row = first_row<S>(slice, a, min(lane / S::L, slice.real - 1));
      real = lane / S::L < slice.real;
      add_slice<S, InFlight>(slice, a, row, lane, part, acc);
    } else if (__ldg(a.deltas + slice.deltas + S::kGroups * S::B) >= 12 * S::kGroups * S::B) {
      multiply_rows<S, 8>(slice, a, part, lane);
    } else {
      multiply_rows<S, 2>(slice, a, part, lane);
    }
  }
  if (a.parts > 1) {
#pragma unroll
    for (int r = 0; r < S::B; ++r) sums[warp][r][lane] = acc[r];
    __syncthreads();
    if (part != 0) return;
    for (int other = 1; other < a.parts; ++other)
#pragma unroll
      for (int r = 0; r < S::B; ++r) acc[r] += sums[warp + other][r][lane];
  }
  store_group<S>(a, row, lane, real, acc);
}

class PackedPlan final : public Plan {
 public:
  PackedPlan(std::shared_ptr<PackedStorage> a, int parts, int in_flight)
      : Plan(a), a_(std::move(a)), parts_(parts), in_flight_(in_flight) {}

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Arguments<T> arguments{a_->slice.as<PackedSlice>(),
                                   a_->order.as<std::uint32_t>(),
                                   a_->deltas.as<std::int32_t>(),
                                   a_->indices.as<char>(),
                                   a_->values.as<T>(),
                                   a_->slices,
                                   a_->rows,
                                   a_->shape.shift,
                                   parts_,
                                   static_cast<T>(alpha),
                                   static_cast<T>(beta),
                                   static_cast<const T*>(x),
                                   static_cast<T*>(y)};
      with_shape(a_->shape, [&](auto shape) {
        using S = decltype(shape);
        const auto kernel = in_flight_ == 14 ? packed_spmv<T, S, 14> : packed_spmv<T, S, 9>;
        cuda::launch(kernel, a_->slices * parts_ * kPackedLanes, kBlock, stream, arguments);
      });
    });
  }

 private:
  std::shared_ptr<PackedStorage> a_;
  int parts_, in_flight_;
};

}  // namespace

std::vector<Policy> packed_policies(const RowStatistics&) {
  const auto policy = [](int parts, int in_flight) { return Policy{{"parts", parts}, {"in_flight", in_flight}}; };
  return {policy(1, 9), policy(1, 14), policy(2, 9)};
}

std::unique_ptr<Plan> make_packed(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int parts = policy.at("parts"), in_flight = policy.at("in_flight");
  if (in_flight != 9 && in_flight != 14) throw Error(ErrorKind::usage, "packed: in_flight must be 9 or 14");
  if (parts != 1 && parts != 2 && parts != 4) throw Error(ErrorKind::usage, "packed: parts must be 1, 2 or 4");
  return std::make_unique<PackedPlan>(std::static_pointer_cast<PackedStorage>(std::move(storage)), parts, in_flight);
}

}  // namespace shardmat
