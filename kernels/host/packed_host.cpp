// Packed rows on host threads: the 32 groups of a slice are the lanes of vector instructions.
#include <algorithm>

#include "kernels/base/parallel.h"
#include "kernels/formats/packed_pieces.h"

namespace shardmat {
namespace {

/// One slice's view of the storage.
template <class T>
struct SliceArrays {
  const PackedSlice& slice;
  const std::int32_t* deltas;
  const char* indices;
  const T* values;

  SliceArrays(const PackedStorage& a, std::int64_t s)
      : slice(a.slice.as<PackedSlice>()[s]),
        deltas(a.deltas.as<std::int32_t>() + slice.deltas),
        indices(a.indices.as<char>() + std::uint64_t{slice.indices} * kPackedUnit),
        values(reinterpret_cast<const T*>(a.values.as<char>() + std::uint64_t{slice.values} * kPackedUnit)) {}
};

using Columns = std::int64_t[kPackedLanes];

/// Adds one slot: acc[r][lane] += values · x.
template <int B, int W, class T>
void add_slot(const Columns& start, const T* values, const T* x, T (&acc)[B][kPackedLanes]) {
  for (int j = 0; j < W; ++j) {
    T xj[kPackedLanes];
    for (int l = 0; l < kPackedLanes; ++l) xj[l] = x[start[l] + j];
    for (int r = 0; r < B; ++r)
      for (int l = 0; l < kPackedLanes; ++l) acc[r][l] += values[(j * B + r) * kPackedLanes + l] * xj[l];
  }
}

template <int B, int W, class T>
void add_width(const std::uint16_t* slots, const std::int32_t* deltas, const char* indices, const T* values, const Columns& row,
               const T* x, T (&acc)[B][kPackedLanes]) {
  Columns start;
  const int shared = slots[kSharedSlot], narrow = slots[kNarrowSlot], full = slots[kFullSlot];
  const auto* short_index = reinterpret_cast<const std::uint16_t*>(indices);
  const auto* long_index = reinterpret_cast<const std::int32_t*>(indices + narrow * (2 * kPackedLanes));
  for (int k = 0; k < shared + narrow + full; ++k, values += W * B * kPackedLanes) {
    for (int l = 0; l < kPackedLanes; ++l)
      start[l] = k < shared            ? row[l] + deltas[k]
                 : k < shared + narrow ? deltas[k] + short_index[(k - shared) * kPackedLanes + l]
                                       : long_index[(k - shared - narrow) * kPackedLanes + l];
    add_slot<B, W>(start, values, x, acc);
  }
}

template <int B, class T>
void add_rows(const SliceArrays<T>& a, const T* x, T (&acc)[B][kPackedLanes]) {
  const auto* columns = reinterpret_cast<const std::int32_t*>(a.indices);
  for (int i = 0; i < kPackedLanes * B; ++i)
    for (std::int32_t k = a.deltas[i]; k < a.deltas[i + 1]; ++k) acc[i % B][i / B] += a.values[k] * x[columns[k]];
}

template <class T, int B, int W>
void multiply_slice(const PackedStorage& a, std::int64_t s, T alpha, const T* x, T beta, T* y) {
  const SliceArrays<T> arrays(a, s);
  const PackedSlice& slice = arrays.slice;
  const std::int64_t groups = a.shape.groups(a.rows);
  const int real = static_cast<int>(std::min<std::int64_t>(kPackedLanes, groups - s * kPackedLanes));
  Columns row;
  for (int l = 0; l < kPackedLanes; ++l) {
    // Lanes behind the last group do as the last one does, with values that are zeros.
    const std::uint32_t group = slice.groups + static_cast<std::uint32_t>(std::min(l, real - 1));
    row[l] = std::int64_t{slice.consecutive ? group : a.order.as<std::uint32_t>()[group]} * B - a.shape.shift;
  }
  T acc[B][kPackedLanes] = {};
  if (slice.csr) {
    add_rows<B>(arrays, x, acc);
  } else {
    add_width<B, W>(slice.pieces, arrays.deltas, arrays.indices, arrays.values, row, x, acc);
    if constexpr (B == 1 && W > 1) {
      packed::SliceCounts counts;
      std::copy_n(slice.pieces, kPackedSlotKinds, counts.pieces);
      add_width<B, 1>(slice.singles, arrays.deltas + counts.piece_deltas(), arrays.indices + 2 * counts.piece_indices(),
                      arrays.values + counts.values(a.shape), row, x, acc);
    }
  }
  for (int l = 0; l < real; ++l)
    for (int r = 0; r < B; ++r) {
      const std::int64_t i = row[l] + r;
      if (i < 0 || i >= a.rows) continue;
      const T product = alpha * acc[r][l];
      y[i] = beta == T(0) ? product : product + beta * y[i];
    }
}

class PackedHostPlan final : public Plan {
 public:
  explicit PackedHostPlan(std::shared_ptr<PackedStorage> a) : Plan(a), a_(std::move(a)) {}

  void multiply(double alpha, const void* x, double beta, void* y, Stream&) const override {
    constexpr std::int64_t kSlicesATask = 16;
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      packed::with_shape(a_->shape, [&](auto rows, auto width) {
        constexpr int B = rows, W = width;
        parallel_tasks((a_->slices + kSlicesATask - 1) / kSlicesATask, [&](std::int64_t task) {
          const std::int64_t end = std::min(a_->slices, (task + 1) * kSlicesATask);
          for (std::int64_t s = task * kSlicesATask; s < end; ++s)
            multiply_slice<T, B, W>(*a_, s, static_cast<T>(alpha), static_cast<const T*>(x), static_cast<T>(beta),
                                    static_cast<T*>(y));
        });
      });
    });
  }

 private:
  std::shared_ptr<PackedStorage> a_;
};

}  // namespace

std::vector<Policy> packed_host_policies(const RowStatistics&) { return {Policy{}}; }

std::unique_ptr<Plan> make_packed_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return std::make_unique<PackedHostPlan>(std::static_pointer_cast<PackedStorage>(std::move(storage)));
}

}  // namespace shardmat
