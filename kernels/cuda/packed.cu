// Packed rows on the device: a warp takes a slice, a thread the rows of a group. All loads of a few slots are issued before their
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
  std::int64_t count, groups, rows;
  int shift, parts;
  T alpha, beta;
  const T* __restrict__ x;
  T* __restrict__ y;
};

/// Slots whose loads are issued together: about `InFlight` values a thread.
__host__ __device__ constexpr int slots_at_once(int values_of_slot, int in_flight) {
  return values_of_slot >= in_flight ? 1 : in_flight / values_of_slot;
}

template <class T>
__device__ T load_value(const T* p) {
  return __ldcs(p);
}

/// Adds the products of `slots` slots to acc; column(k) is the first column of this lane's piece in slot k.
template <int B, int W, int U, class T, class Column>
__device__ void add_slots(int slots, int part, int parts, const T* __restrict__ values, const T* __restrict__ x,
                          const Column& column, T (&acc)[B]) {
  int k = part * U;
  for (; k + U <= slots; k += parts * U) {
    std::int64_t start[U];
    T value[U][W][B];
#pragma unroll
    for (int u = 0; u < U; ++u) start[u] = column(k + u);
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int j = 0; j < W; ++j)
#pragma unroll
        for (int r = 0; r < B; ++r) value[u][j][r] = load_value(values + (((k + u) * W + j) * B + r) * kPackedLanes);
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int j = 0; j < W; ++j) {
        const T xj = __ldg(x + start[u] + j);
#pragma unroll
        for (int r = 0; r < B; ++r) acc[r] += value[u][j][r] * xj;
      }
  }
  for (int u = 0; u < U && k + u < slots; ++u) {
    const std::int64_t start = column(k + u);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      const T xj = __ldg(x + start + j);
#pragma unroll
      for (int r = 0; r < B; ++r) acc[r] += load_value(values + (((k + u) * W + j) * B + r) * kPackedLanes) * xj;
    }
  }
}

/// The slots of one width: shared, narrow, full.
template <int B, int W, int U, class T>
__device__ void add_width(const std::uint16_t* slots, const std::int32_t* __restrict__ deltas, const char* __restrict__ indices,
                          const T* __restrict__ values, std::int64_t row, int lane, int part, int parts,
                          const T* __restrict__ x, T (&acc)[B]) {
  constexpr int kSlot = W * B * kPackedLanes;
  const int shared = slots[kSharedSlot], narrow = slots[kNarrowSlot], full = slots[kFullSlot];
  if (shared > 0) {
    add_slots<B, W, U>(shared, part, parts, values + lane, x + row, [&](int k) { return __ldg(deltas + k); }, acc);
    values += static_cast<std::int64_t>(shared) * kSlot;
  }
  if (narrow > 0) {
    const std::int32_t* base = deltas + shared;
    const auto* index = reinterpret_cast<const std::uint16_t*>(indices) + lane;
    add_slots<B, W, U>(narrow, part, parts, values + lane, x,
                       [&](int k) { return __ldg(base + k) + __ldcs(index + k * kPackedLanes); }, acc);
    values += static_cast<std::int64_t>(narrow) * kSlot;
  }
  if (full > 0) {
    const auto* index = reinterpret_cast<const std::int32_t*>(indices + narrow * (2 * kPackedLanes)) + lane;
    add_slots<B, W, U>(full, part, parts, values + lane, x, [&](int k) { return __ldcs(index + k * kPackedLanes); }, acc);
  }
}

/// A slice stored as CSR rows: the warp's lanes share a row, as many as its mean length asks for, and lane l ends with the sums of
/// group l.
template <int B, class T>
__device__ void add_rows(const PackedSlice& slice, const Arguments<T>& a, int lane, T (&acc)[B]) {
  const std::int32_t* offsets = a.deltas + slice.deltas;
  const auto* columns = reinterpret_cast<const std::int32_t*>(a.indices + std::uint64_t{slice.indices} * kPackedUnit);
  const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
  const int mean = __ldg(offsets + kPackedLanes * B) / (kPackedLanes * B);
  const int threads = mean >= 24 ? 32 : mean >= 8 ? 8 : 2;
  for (int first = 0; first < kPackedLanes * B; first += kPackedLanes / threads) {
    const int row = first + lane / threads;
    const std::int32_t end = __ldg(offsets + row + 1);
    T sum = 0;
    for (std::int32_t k = __ldg(offsets + row) + lane % threads; k < end; k += 4 * threads) {
#pragma unroll
      for (int u = 0; u < 4; ++u)
        if (k + u * threads < end) sum += __ldcs(values + k + u * threads) * __ldg(a.x + __ldcs(columns + k + u * threads));
    }
    for (int offset = threads / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
    for (int i = 0; i < kPackedLanes / threads; ++i) {
      const T of_row = __shfl_sync(kAll, sum, i * threads);
#pragma unroll
      for (int r = 0; r < B; ++r)
        if (lane * B + r == first + i) acc[r] = of_row;
    }
  }
}

template <class T, int B, int W, int InFlight>
__global__ void __launch_bounds__(kBlock) packed_spmv(const Arguments<T> a) {
  __shared__ T sums[kWarps][B][kPackedLanes];
  const int warp = static_cast<int>(threadIdx.x) / kPackedLanes, lane = static_cast<int>(threadIdx.x) % kPackedLanes;
  const int part = warp % a.parts;
  const std::int64_t index = (static_cast<std::int64_t>(blockIdx.x) * kWarps + warp) / a.parts;
  const bool inside = index < a.count;
  T acc[B] = {};
  std::int64_t row = 0;
  if (inside) {
    PackedSlice slice;
    *reinterpret_cast<int4*>(&slice) = __ldg(reinterpret_cast<const int4*>(a.slices + index));
    *(reinterpret_cast<int4*>(&slice) + 1) = __ldg(reinterpret_cast<const int4*>(a.slices + index) + 1);
    // Lanes behind the last group do as the last one does, with values that are zeros, so that their shared columns exist.
    const auto real = static_cast<std::uint32_t>(min(std::int64_t{kPackedLanes}, a.groups - index * kPackedLanes));
    const std::uint32_t group = slice.groups + min(static_cast<std::uint32_t>(lane), real - 1);
    row = static_cast<std::int64_t>(slice.consecutive ? group : __ldg(a.order + group)) * B - a.shift;
    if (slice.csr) {
      if (part == 0) add_rows<B>(slice, a, lane, acc);
    } else {
      const std::int32_t* deltas = a.deltas + slice.deltas;
      const char* indices = a.indices + std::uint64_t{slice.indices} * kPackedUnit;
      const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
      add_width<B, W, slots_at_once(W * B, InFlight)>(slice.pieces, deltas, indices, values, row, lane, part, a.parts, a.x, acc);
      if constexpr (B == 1 && W > 1) {
        const int shared = slice.pieces[kSharedSlot], narrow = slice.pieces[kNarrowSlot], full = slice.pieces[kFullSlot];
        add_width<B, 1, slots_at_once(1, InFlight)>(slice.singles, deltas + shared + narrow,
                                                    indices + (narrow + 2 * full) * (2 * kPackedLanes),
                                                    values + static_cast<std::int64_t>(shared + narrow + full) * (W * kPackedLanes),
                                                    row, lane, part, a.parts, a.x, acc);
      }
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
  if (!inside || index * kPackedLanes + lane >= a.groups) return;
#pragma unroll
  for (int r = 0; r < B; ++r)
    if (B == 1 || (row + r >= 0 && row + r < a.rows)) {
      const T product = a.alpha * acc[r];
      a.y[row + r] = a.beta == T(0) ? product : product + a.beta * a.y[row + r];
    }
}

class PackedPlan final : public Plan {
 public:
  PackedPlan(std::shared_ptr<PackedStorage> a, int parts, int in_flight)
      : Plan(a), a_(std::move(a)), parts_(parts), in_flight_(in_flight) {}

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Arguments<T> arguments{a_->slice.as<PackedSlice>(), a_->order.as<std::uint32_t>(), a_->deltas.as<std::int32_t>(),
                                   a_->indices.as<char>(), a_->values.as<T>(), a_->slices, a_->shape.groups(a_->rows), a_->rows,
                                   a_->shape.shift, parts_, static_cast<T>(alpha), static_cast<T>(beta),
                                   static_cast<const T*>(x), static_cast<T*>(y)};
      with_shape(a_->shape, [&](auto rows, auto width) {
        const auto kernel = in_flight_ == 16 ? packed_spmv<T, rows, width, 16> : packed_spmv<T, rows, width, 8>;
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
  return {policy(1, 8), policy(1, 16), policy(2, 8), policy(4, 8)};
}

std::unique_ptr<Plan> make_packed(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int parts = policy.at("parts"), in_flight = policy.at("in_flight");
  if (parts != 1 && parts != 2 && parts != 4) throw Error(ErrorKind::usage, "packed: parts must be 1, 2 or 4");
  if (in_flight != 8 && in_flight != 16) throw Error(ErrorKind::usage, "packed: in_flight must be 8 or 16");
  return std::make_unique<PackedPlan>(std::static_pointer_cast<PackedStorage>(std::move(storage)), parts, in_flight);
}

}  // namespace shardmat
