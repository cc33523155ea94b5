// Packed rows on the device: a warp takes a slice, L lanes the rows of a group. All loads of a few slots are issued before their
// products, nothing is read from memory for the columns of a shared slot, and values arrive as whole cache lines. `parts`
// warps may share a slice when there are too few slices to fill the device; their sums meet in shared memory in fixed order.
#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/packed_pieces.h"

namespace shardmat {
namespace {

using packed::with_shape;

constexpr int kBlock = 128;
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

template <int Hint, class T>
__device__ T load(const T* p) {
  if constexpr (Hint == 0) return __ldcs(p);
  if constexpr (Hint == 2) return __ldg(p);
  T value;
  if constexpr (sizeof(T) == 8)
    asm volatile("ld.global.nc.L1::no_allocate.f64 %0, [%1];" : "=d"(value) : "l"(p));
  else
    asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(value) : "l"(p));
  return value;
}

/// Adds the products of `slots` slots to acc; column(k) is the column of this lane in slot k. The loads of about InFlight
/// values are issued before their products.
template <class S, int B, int InFlight, int Hint, class T, class Column>
__device__ void add_slots(int slots, int part, int parts, const T* __restrict__ values, const T* __restrict__ x,
                          const Column& column, T (&acc)[B]) {
  constexpr int C = S::kColumns, U = InFlight > B * C ? InFlight / (B * C) : 1;
  for (int k = part * U; k < slots; k += parts * U) {
    std::int32_t at[U];
    T value[U][C][B];
#pragma unroll
    for (int u = 0; u < U; ++u) at[u] = k + u < slots ? column(k + u) : 0;
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int r = 0; r < B; ++r)
          value[u][c][r] = k + u < slots ? load<Hint>(values + (((k + u) * C + c) * B + r) * S::kLanes) : T(0);
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (k + u < slots)
#pragma unroll
        for (int c = 0; c < C; ++c) {
          const T of_x = __ldg(x + at[u] + c);
#pragma unroll
          for (int r = 0; r < B; ++r) acc[r] += value[u][c][r] * of_x;
        }
  }
}

/// The slots of one width: shared, narrow, full.
template <int B, int W, int L, int InFlight, int Hint, class T>
__device__ void add_width(const std::uint16_t* slots, const std::int32_t* __restrict__ deltas, const char* __restrict__ indices,
                          const T* __restrict__ values, std::int64_t row, int in_warp, int part, int parts,
                          const T* __restrict__ x, T (&acc)[B]) {
  using S = packed::Slots<B, W, L>;
  const int lane = in_warp < S::kLanes ? in_warp : S::kLanes - 1;  // lanes that do not work (L = 3, 6) do as the last one does
  const int shared = slots[kSharedSlot], narrow = slots[kNarrowSlot], full = slots[kFullSlot];
  const int index = lane / S::kLanesOfPiece, piece = index % S::kPieces;
  x += lane % S::kLanesOfPiece * S::kColumns;
  values += lane;
  if (shared > 0) {
    const std::int32_t* delta = deltas + piece;
    add_slots<S, B, InFlight, Hint>(shared, part, parts, values, x + row, [&](int k) { return __ldg(delta + k * S::kPieces); }, acc);
    values += static_cast<std::int64_t>(shared) * S::kValues;
  }
  if (narrow > 0) {
    const std::int32_t* base = deltas + shared * S::kPieces;
    const auto* offset = reinterpret_cast<const std::uint16_t*>(indices + full * (4 * S::kIndices)) + index;
    add_slots<S, B, InFlight, Hint>(narrow, part, parts, values, x,
                       [&](int k) { return __ldg(base + k) + __ldcs(offset + k * S::kIndices); }, acc);
    values += static_cast<std::int64_t>(narrow) * S::kValues;
  }
  if (full > 0) {
    const auto* column = reinterpret_cast<const std::int32_t*>(indices) + index;
    add_slots<S, B, InFlight, Hint>(full, part, parts, values, x, [&](int k) { return __ldcs(column + k * S::kIndices); }, acc);
  }
}

/// y of one row.
template <class T>
__device__ void store(const Arguments<T>& a, std::int64_t row, T sum) {
  if (row < 0 || row >= a.rows) return;
  const T product = a.alpha * sum;
  a.y[row] = a.beta == T(0) ? product : product + a.beta * a.y[row];
}

/// First row of the group at a place in a slice.
template <class T, int B>
__device__ std::int64_t first_row(const PackedSlice& slice, const Arguments<T>& a, int group) {
  const std::uint32_t at = slice.groups + group;
  return static_cast<std::int64_t>(slice.consecutive ? at : __ldg(a.order + at)) * B - a.shift;
}

/// A slice stored as CSR rows: the warp's lanes share a row, as many as its mean length asks for.
template <class T, int B, int L>
__device__ void multiply_rows(const PackedSlice& slice, const Arguments<T>& a, int real, int lane) {
  constexpr int kRows = kPackedLanes / L * B;
  const std::int32_t* offsets = a.deltas + slice.deltas;
  const auto* columns = reinterpret_cast<const std::int32_t*>(a.indices + std::uint64_t{slice.indices} * kPackedUnit);
  const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
  const int mean = __ldg(offsets + kRows) / kRows;
  const int threads = mean >= 24 ? 32 : mean >= 8 ? 8 : 2;
  for (int first = 0; first < kRows; first += kPackedLanes / threads) {
    const int i = first + lane / threads;
    const bool inside = i < real * B;
    const std::int32_t end = inside ? __ldg(offsets + i + 1) : 0;
    T sum = 0;
    for (std::int32_t k = (inside ? __ldg(offsets + i) : 0) + lane % threads; k < end; k += 4 * threads) {
#pragma unroll
      for (int u = 0; u < 4; ++u)
        if (k + u * threads < end) sum += __ldcs(values + k + u * threads) * __ldg(a.x + __ldcs(columns + k + u * threads));
    }
    for (int offset = threads / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
    if (inside && lane % threads == 0) store(a, first_row<T, B>(slice, a, i / B) + i % B, sum);
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

template <class T, class Shape, int InFlight, int Hint>
__global__ void __launch_bounds__(kBlock) packed_spmv(const Arguments<T> a) {
  constexpr int B = Shape::B, W = Shape::W, L = Shape::L, G = kPackedLanes / L;
  __shared__ T sums[kWarps][B][kPackedLanes];
  const int warp = static_cast<int>(threadIdx.x) / kPackedLanes, lane = static_cast<int>(threadIdx.x) % kPackedLanes;
  const int part = warp % a.parts;
  const std::int64_t index = (static_cast<std::int64_t>(blockIdx.x) * kWarps + warp) / a.parts;
  const int group = min(lane / L, G - 1);
  bool inside = index < a.count;
  T acc[B] = {};
  std::int64_t row = 0;
  if (inside) {
    PackedSlice slice;
    *reinterpret_cast<int4*>(&slice) = __ldg(reinterpret_cast<const int4*>(a.slices + index));
    *(reinterpret_cast<int4*>(&slice) + 1) = __ldg(reinterpret_cast<const int4*>(a.slices + index) + 1);
    // Lanes behind the last group do as the last one does, with values that are zeros, so that their shared columns exist.
    const int real = slice.real;
    row = first_row<T, B>(slice, a, min(group, real - 1));
    if (slice.csr) {
      if (part == 0) multiply_rows<T, B, L>(slice, a, real, lane);
      inside = false;
    } else {
      const packed::SliceCounts<B, W, L> counts(slice);
      const std::int32_t* deltas = a.deltas + slice.deltas;
      const char* indices = a.indices + std::uint64_t{slice.indices} * kPackedUnit;
      const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
      add_width<B, W, L, InFlight, Hint>(slice.pieces, deltas, indices, values, row, lane, part, a.parts, a.x, acc);
      if constexpr (B == 1 && W > 1) {
        using S = packed::Slots<B, W, L>;
        add_width<B, 1, L, InFlight, Hint>(slice.singles, deltas + counts.pieces.template deltas<S>(), indices + counts.single_indices(),
                              values + counts.pieces.template values<S>(), row, lane, part, a.parts, a.x, acc);
      }
      inside = lane / L < real;
    }
  }
  if (a.parts > 1) {
#pragma unroll
    for (int r = 0; r < B; ++r) sums[warp][r][lane] = acc[r];
    __syncthreads();
    if (part != 0) return;
    for (int other = 1; other < a.parts; ++other)
#pragma unroll
      for (int r = 0; r < B; ++r) acc[r] += sums[warp + other][r][lane];
  }
  T mine = 0;
#pragma unroll
  for (int r = 0; r < B; ++r) {
    const T sum = sum_of_group<L>(acc[r]);
    const T of_row = B == 1 ? sum : __shfl_sync(kAll, sum, group * L);
    if (lane % L == r) mine = of_row;
  }
  if (inside && lane % L < B) store(a, row + lane % L, mine);
}

class PackedPlan final : public Plan {
 public:
  PackedPlan(std::shared_ptr<PackedStorage> a, int parts, int in_flight, int hint)
      : Plan(a), a_(std::move(a)), parts_(parts), in_flight_(in_flight), hint_(hint) {}

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Arguments<T> arguments{a_->slice.as<PackedSlice>(), a_->order.as<std::uint32_t>(), a_->deltas.as<std::int32_t>(),
                                   a_->indices.as<char>(), a_->values.as<T>(),   a_->slices, a_->rows,
                                   a_->shape.shift, parts_, static_cast<T>(alpha), static_cast<T>(beta),
                                   static_cast<const T*>(x), static_cast<T*>(y)};
      with_shape(a_->shape, [&](auto shape) {
        using Shape = decltype(shape);
        const auto kernel = hint_ == 0 ? (in_flight_ == 16 ? packed_spmv<T, Shape, 16, 0> : packed_spmv<T, Shape, 9, 0>)
                            : hint_ == 1 ? (in_flight_ == 16 ? packed_spmv<T, Shape, 16, 1> : packed_spmv<T, Shape, 9, 1>)
                            : (in_flight_ == 16 ? packed_spmv<T, Shape, 16, 2> : packed_spmv<T, Shape, 9, 2>);
        cuda::launch(kernel, a_->slices * parts_ * kPackedLanes, kBlock, stream, arguments);
      });
    });
  }

 private:
  std::shared_ptr<PackedStorage> a_;
  int parts_, in_flight_, hint_;
};

}  // namespace

std::vector<Policy> packed_policies(const RowStatistics&) {
  const auto policy = [](int parts, int in_flight, int hint) {
    return Policy{{"parts", parts}, {"in_flight", in_flight}, {"hint", hint}};
  };
  return {policy(1, 9, 0), policy(1, 16, 0), policy(1, 9, 1), policy(1, 16, 1), policy(1, 9, 2), policy(1, 16, 2),
          policy(2, 9, 0), policy(2, 16, 1), policy(4, 9, 0)};
}

std::unique_ptr<Plan> make_packed(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int parts = policy.at("parts"), in_flight = policy.at("in_flight");
  if (parts != 1 && parts != 2 && parts != 4) throw Error(ErrorKind::usage, "packed: parts must be 1, 2 or 4");
  if (in_flight != 9 && in_flight != 16) throw Error(ErrorKind::usage, "packed: in_flight must be 9 or 16");
  return std::make_unique<PackedPlan>(std::static_pointer_cast<PackedStorage>(std::move(storage)), parts, in_flight, policy.at("hint"));
}

}  // namespace shardmat
