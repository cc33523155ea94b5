// Packed rows on host threads: the lanes of a slice are those of vector instructions.
#include <algorithm>
#include <numeric>

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

/// Adds the slots of one width: acc[r][lane] += values · x. `row` is the first row of each group.
template <int B, int W, int L, class T>
void add_width(const packed::SlotCounts& slots, const std::int32_t* deltas, const char* indices, const T* values,
               const std::int64_t* row, const T* x, T (&acc)[B][kPackedLanes]) {
  using S = packed::Slots<B, W, L>;
  const std::uint32_t shared = slots.of[kSharedSlot], narrow = slots.of[kNarrowSlot], full = slots.of[kFullSlot];
  const auto* long_index = reinterpret_cast<const std::int32_t*>(indices);
  const auto* short_index = reinterpret_cast<const std::uint16_t*>(indices + full * (4 * S::kIndices));
  for (std::uint32_t k = 0; k < shared + narrow + full; ++k, values += S::kValues) {
    T of_x[S::kColumns][S::kLanes];
    for (int i = 0; i < S::kIndices; ++i) {
      const std::int64_t start = k < shared            ? row[i / S::kPieces] + deltas[k * S::kPieces + i % S::kPieces]
                                 : k < shared + narrow ? deltas[shared * S::kPieces + (k - shared)] + short_index[(k - shared) * S::kIndices + i]
                                                       : long_index[(k - shared - narrow) * S::kIndices + i];
      for (int j = 0; j < W; ++j) of_x[j % S::kColumns][i * S::kLanesOfPiece + j / S::kColumns] = x[start + j];
    }
    for (int c = 0; c < S::kColumns; ++c)
      for (int r = 0; r < B; ++r)
        for (int l = 0; l < S::kLanes; ++l) acc[r][l] += values[(c * B + r) * S::kLanes + l] * of_x[c][l];
  }
}

/// The first rows of a slice's groups; groups behind the last do as it does, with values that are zeros.
template <int G>
int first_rows(const PackedStorage& a, std::int64_t s, std::int64_t (&row)[G]) {
  const PackedSlice& slice = a.slice.as<PackedSlice>()[s];
  const int real = slice.real;
  for (int g = 0; g < G; ++g) {
    const std::uint32_t at = slice.groups + static_cast<std::uint32_t>(std::min(g, real - 1));
    row[g] = std::int64_t{slice.consecutive ? at : a.order.as<std::uint32_t>()[at]} * a.shape.rows - a.shape.shift;
  }
  return real;
}

template <class T, int B, int W, int L>
void multiply_slice(const PackedStorage& a, std::int64_t s, T alpha, const T* x, T beta, T* y) {
  constexpr int G = kPackedLanes / L;
  const SliceArrays<T> arrays(a, s);
  std::int64_t row[G];
  const int real = first_rows(a, s, row);
  const auto store = [&](std::int64_t i, T sum) {
    if (i >= 0 && i < a.rows) y[i] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[i];
  };
  if (arrays.slice.csr) {
    const auto* columns = reinterpret_cast<const std::int32_t*>(arrays.indices);
    for (int i = 0; i < real * B; ++i) {
      T sum = 0;
      for (std::int32_t k = arrays.deltas[i]; k < arrays.deltas[i + 1]; ++k) sum += arrays.values[k] * x[columns[k]];
      store(row[i / B] + i % B, sum);
    }
    return;
  }
  T acc[B][kPackedLanes] = {};
  const packed::SliceCounts<B, W, L> counts(arrays.slice);
  add_width<B, W, L>(counts.pieces, arrays.deltas, arrays.indices, arrays.values, row, x, acc);
  if constexpr (B == 1 && W > 1) {
    using S = packed::Slots<B, W, L>;
    add_width<B, 1, L>(counts.singles, arrays.deltas + counts.pieces.template deltas<S>(), arrays.indices + counts.single_indices(),
                       arrays.values + counts.pieces.template values<S>(), row, x, acc);
  }
  for (int g = 0; g < real; ++g)
    for (int r = 0; r < B; ++r) store(row[g] + r, std::accumulate(acc[r] + g * L, acc[r] + (g + 1) * L, T(0)));
}

class PackedHostPlan final : public Plan {
 public:
  explicit PackedHostPlan(std::shared_ptr<PackedStorage> a) : Plan(a), a_(std::move(a)) {}

  void multiply(double alpha, const void* x, double beta, void* y, Stream&) const override {
    constexpr std::int64_t kSlicesATask = 16;
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      packed::with_shape(a_->shape, [&](auto shape) {
        parallel_tasks((a_->slices + kSlicesATask - 1) / kSlicesATask, [&](std::int64_t task) {
          const std::int64_t end = std::min(a_->slices, (task + 1) * kSlicesATask);
          for (std::int64_t s = task * kSlicesATask; s < end; ++s)
            multiply_slice<T, shape.B, shape.W, shape.L>(*a_, s, static_cast<T>(alpha), static_cast<const T*>(x), static_cast<T>(beta),
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
