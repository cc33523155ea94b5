// Packed rows on host threads: the lanes of a slice are those of vector instructions.
#include <algorithm>
#include <numeric>

#include "kernels/base/parallel.h"
#include "kernels/cost_model.h"
#include "kernels/formats/packed_pieces.h"
#include "kernels/host/packed_lanes.h"
#include "kernels/host/ranges.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

/// Adds the slots of one kind: acc[r][lane] += values · x. column(k, i) is the first column of piece i in slot k.
template <class S, class T, class Column>
void add_slots(std::uint32_t slots, const T* values, const T* x, const Column& column, T (&acc)[S::B][kPackedLanes]) {
  constexpr std::uint32_t V = S::template kInterleaved<T>;
  for (std::uint32_t k = 0; k < slots; ++k) {
    T of_x[S::kColumns][S::kLanes];
    for (std::uint32_t i = 0; i < S::kIndices; ++i) {
      const std::int64_t start = column(k, i);
      for (int j = 0; j < S::B; ++j)
        of_x[j % S::kColumns][i * S::kLanesOfPiece + static_cast<std::uint32_t>(j / S::kColumns)] = x[start + j];
    }
    const std::uint32_t whole = slots / V * V;
    const T* first = values + packed::interleaved<V>(k, 0, S::kValues, slots);
    const std::uint32_t step = k < whole ? V : 1;
    for (int c = 0; c < S::kColumns; ++c)
      for (int r = 0; r < S::B; ++r)
        for (std::uint32_t l = 0; l < S::kLanes; ++l)
          acc[r][l] += first[(static_cast<std::uint32_t>(c * S::B + r) * S::kLanes + l) * step] * of_x[c][l];
  }
}

/// Adds the products of a slice's slots. `row` is the first row of each group.
template <class S, class T>
void add_slice(const PackedStorage& a, const PackedSlice& slice, const std::int64_t* row, const T* x,
               T (&acc)[S::B][kPackedLanes]) {
  constexpr int V = S::template kInterleaved<T>;
  const packed::SlotCounts<S> counts(slice);
  const T* values = reinterpret_cast<const T*>(a.values.as<char>() + std::uint64_t{slice.values} * kPackedUnit);
  const char* narrow = a.indices.as<char>() + std::uint64_t{slice.indices} * kPackedUnit;
  const auto* full = reinterpret_cast<const std::int32_t*>(narrow + counts.narrow_bytes());
  const std::int32_t* deltas = a.deltas.as<std::int32_t>() + slice.deltas;
  add_slots<S>(
      slice.slots[kSharedSlot], values, x,
      [&](std::uint32_t k, std::uint32_t i) {
        return row[i / S::kPieces] + deltas[packed::interleaved<V>(k, i % S::kPieces, S::kPieces, slice.slots[kSharedSlot])];
      },
      acc);
  add_slots<S>(
      slice.slots[kNarrowSlot], values + counts.values(kNarrowSlot), x,
      [&](std::uint32_t k, std::uint32_t i) {
        const auto place = packed::narrow_place<V>(k, i, S::kNarrowBytes, slice.slots[kNarrowSlot]);
        return std::int64_t{*reinterpret_cast<const std::int32_t*>(narrow + place.base)} +
               *reinterpret_cast<const std::uint16_t*>(narrow + place.column);
      },
      acc);
  add_slots<S>(
      slice.slots[kFullSlot], values + counts.values(kFullSlot), x,
      [&](std::uint32_t k, std::uint32_t i) {
        return std::int64_t{full[packed::interleaved<V>(k, i, S::kIndices, slice.slots[kFullSlot])]};
      },
      acc);
}

template <class T, class S>
void multiply_slice(const PackedStorage& a, std::int64_t s, T alpha, const T* x, T beta, T* y) {
  const PackedSlice& slice = a.slice.as<PackedSlice>()[s];
  // Groups behind the last do as it does, with values that are zeros.
  std::int64_t row[S::kGroups];
  for (int g = 0; g < S::kGroups; ++g) {
    const std::uint32_t at = slice.groups + static_cast<std::uint32_t>(std::min(g, slice.real - 1));
    row[g] = std::int64_t{slice.consecutive ? at : a.order.as<std::uint32_t>()[at]} * S::B - a.shape.shift;
  }
  const auto store = [&](std::int64_t i, T sum) {
    if (i >= 0 && i < a.rows) y[i] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[i];
  };
  if (slice.csr) {
    const auto* columns =
        reinterpret_cast<const std::int32_t*>(a.indices.as<char>() + std::uint64_t{slice.indices} * kPackedUnit);
    const T* values = reinterpret_cast<const T*>(a.values.as<char>() + std::uint64_t{slice.values} * kPackedUnit);
    const std::int32_t* offsets = a.deltas.as<std::int32_t>() + slice.deltas;
    for (int i = 0; i < slice.real * S::B; ++i) {
      T sum = 0;
      for (std::int32_t k = offsets[i]; k < offsets[i + 1]; ++k) sum += values[k] * x[columns[k]];
      store(row[i / S::B] + i % S::B, sum);
    }
    return;
  }
  T acc[S::B][kPackedLanes] = {};
  add_slice<S>(a, slice, row, x, acc);
  for (int g = 0; g < slice.real; ++g)
    for (int r = 0; r < S::B; ++r) store(row[g] + r, std::accumulate(acc[r] + g * S::L, acc[r] + (g + 1) * S::L, T(0)));
}

std::unique_ptr<Plan> make_single_rows(std::shared_ptr<Storage> storage) {
  const auto& a = static_cast<const PackedStorage&>(*storage);
  return typed_plan<PackedStorage>(
      storage, [starts = packed::even_slice_starts(a), splits = packed::row_splits(a), isa = instruction_set()]<class T>(
                   const PackedStorage& m, const Operands<T>& v, Stream&) {
        for_each_range(starts, isa, [&]<class Set>(Set, std::int64_t begin, std::int64_t end) SHARDMAT_INLINE_LAMBDA {
          const auto store = [&](std::int64_t row, int first, int last, const auto& sum) SHARDMAT_INLINE_LAMBDA {
            for (int lane = first; lane < last; ++lane) put<Set>(v.y[row + lane], v.alpha * sum[0][lane], v.beta);
          };
          for (std::int64_t s = begin; s < end; ++s)
            packed::multiply_columns<Set, T, 1>(packed::SingleRowSlice<T>(m, s), splits[static_cast<std::size_t>(s)], {v.x},
                                                store);
        });
      });
}

}  // namespace

double packed_host_cost(ConversionInput& input, const Policy& layout) {
  const bool single_rows = layout.at("block") == 1 && layout.at("lanes") == 1;
  return effective_bytes(input, static_cast<double>(packed_estimate(input, layout)),
                         {.efficiency = single_rows ? 0.7 : 0.3});
}

std::vector<Policy> packed_host_policies(const RowStatistics&) { return {Policy{}}; }

std::unique_ptr<Plan> make_packed_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  if (packed::has_single_rows(static_cast<const PackedStorage&>(*storage))) return make_single_rows(std::move(storage));
  return typed_plan<PackedStorage>(std::move(storage), []<class T>(const PackedStorage& a, const Operands<T>& v, Stream&) {
    constexpr std::int64_t kSlicesATask = 16;
    packed::with_shape(a.shape, [&](auto shape) {
      parallel_tasks((a.slices + kSlicesATask - 1) / kSlicesATask, [&](std::int64_t task) {
        const std::int64_t end = std::min(a.slices, (task + 1) * kSlicesATask);
        for (std::int64_t s = task * kSlicesATask; s < end; ++s)
          multiply_slice<T, decltype(shape)>(a, s, v.alpha, v.x, v.beta, v.y);
      });
    });
  });
}

}  // namespace shardmat
