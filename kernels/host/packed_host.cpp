// Packed rows on host threads: the lanes of a slice are those of vector instructions.
#include <algorithm>
#include <numeric>

#include "kernels/base/parallel.h"
#include "kernels/cost_model.h"
#include "kernels/formats/packed_pieces.h"
#include "kernels/host/csr_rows.h"
#include "kernels/host/packed_slices.h"
#include "kernels/host/ranges.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

constexpr std::int64_t kSplitGrain = 1 << 14;  // slices that are worth a thread of their own

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

/// Calls f(std::integral_constant<int, i>) for an i below N.
template <int N, class F>
SHARDMAT_INLINE void with_constant(int i, const F& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) SHARDMAT_INLINE_LAMBDA {
    ((i == I ? f(std::integral_constant<int, I>{}) : void()), ...);
  }
  (std::make_integer_sequence<int, N>{});
}

/// How the rows of a slice lie: lanes [0, split) are consecutive rows, and the others, too, further down. 32: all are; 0:
/// the rows lie otherwise, or the slice has fewer than 32, or is stored as CSR.
std::uint8_t row_split(const PackedStorage& a, std::int64_t s) {
  const packed::SingleRowSlice<double> slice(a, s);
  if (slice.is_csr() || slice.rows() < kPackedLanes) return 0;
  const auto follows = [&](int lane) { return slice.row(lane) == slice.row(lane - 1) + 1; };
  int split = 1;
  while (split < kPackedLanes && follows(split)) ++split;
  if (split < kPackedLanes && slice.row(split) < slice.row(split - 1)) return 0;
  for (int lane = split + 1; lane < kPackedLanes; ++lane)
    if (!follows(lane)) return 0;
  return static_cast<std::uint8_t>(split);
}

/// A slice with block = lanes = 1: the lanes of several vectors, with the sums of its rows.
template <class Set, class T>
struct SliceSums {
  static constexpr int kLanes = static_cast<int>(Set::kBytes / sizeof(T)), kPacks = kPackedLanes / kLanes;
  using Pack = Lanes<T, kLanes>;

  Pack sums[kPacks] = {};

  /// Adds values · of_x(p) for each pack of lanes p.
  template <class OfX>
  SHARDMAT_INLINE void add(const T* values, const OfX& of_x) {
#pragma GCC unroll 16
    for (int p = 0; p < kPacks; ++p) add_product<Set>(sums[p], load<kLanes>(values + p * kLanes), of_x(p));
  }
  /// Adds values · x[column(lane)].
  template <class Column>
  SHARDMAT_INLINE void add_gathered(const T* values, const T* x, const Column& column) {
    add(values, [&](int p) SHARDMAT_INLINE_LAMBDA {
      Pack of_x;
#pragma GCC unroll 16
      for (int j = 0; j < kLanes; ++j) of_x[j] = x[column(p * kLanes + j)];
      return of_x;
    });
  }
};

// A vector of lanes reads consecutive entries of x where its rows are consecutive. Where one gap lies between them, it takes
// the lanes before the gap from one load and the others from a second one, which ends with the last row: rows ascend, so
// that neither load leaves the columns between those of the first and of the last row.

/// A slice of rows in two ranges, as row_split() says: one vector at most has a gap.
template <class Set, class T>
SHARDMAT_INLINE void multiply_two_ranges(const packed::SingleRowSlice<T>& slice, int split, const Operands<T>& v) {
  using Sums = SliceSums<Set, T>;
  constexpr int kLanes = Sums::kLanes;
  Sums sums;
  const std::int64_t first = slice.row(0), second = slice.row(split % kPackedLanes) - split % kPackedLanes;
  const T *const head = v.x + first, *const tail = v.x + second;
  if (split == kPackedLanes) {
    slice.for_each_shared_slot([&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
      sums.add(values, [&](int p) SHARDMAT_INLINE_LAMBDA { return load<kLanes>(head + delta + p * kLanes); });
    });
  } else {
    using Int = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
    Lanes<Int, kLanes> before_gap;
    for (int j = 0; j < kLanes; ++j) before_gap[j] = j < split % kLanes ? -1 : 0;
    with_constant<Sums::kPacks>(split / kLanes, [&]<int Gap>(std::integral_constant<int, Gap>) SHARDMAT_INLINE_LAMBDA {
      slice.for_each_shared_slot([&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
        const T *const near = head + delta, *const far = tail + delta;
        sums.add(values, [&](int p) SHARDMAT_INLINE_LAMBDA {
          if (p < Gap) return load<kLanes>(near + p * kLanes);
          if (p > Gap) return load<kLanes>(far + p * kLanes);
          return before_gap ? load<kLanes>(near + p * kLanes) : load<kLanes>(far + p * kLanes);
        });
      });
    });
  }
  slice.for_each_other_slot([&](const T* values, const auto& column)
                                SHARDMAT_INLINE_LAMBDA { sums.add_gathered(values, v.x, column); });
  T sum[kPackedLanes];
  std::memcpy(sum, sums.sums, sizeof sum);
  for (int lane = 0; lane < split; ++lane) put<Set>(v.y[first + lane], v.alpha * sum[lane], v.beta);
  for (int lane = split; lane < kPackedLanes; ++lane) put<Set>(v.y[second + lane], v.alpha * sum[lane], v.beta);
}

/// A slice of any rows. Vectors with more than one gap gather.
template <class Set, class T>
SHARDMAT_INLINE void multiply_any_rows(const packed::SingleRowSlice<T>& slice, const Operands<T>& v) {
  if (slice.is_csr()) {
    for (int lane = 0; lane < slice.rows(); ++lane)
      put<Set>(v.y[slice.row(lane)],
               v.alpha * sum_of_row<Set>(slice.csr_values(lane), slice.csr_columns(lane), slice.csr_count(lane), v.x),
               v.beta);
    return;
  }
  using Sums = SliceSums<Set, T>;
  using Int = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  constexpr int kLanes = Sums::kLanes;
  Sums sums;
  const packed::RowsOfLanes row = slice.rows_of_lanes();
  Lanes<Int, kLanes> before_gap[Sums::kPacks];
  bool one_gap = true;
  for (int p = 0; p < Sums::kPacks; ++p) {
    const int first = p * kLanes, end = first + kLanes;
    int gap = first + 1;
    while (gap < end && row[gap] == row[gap - 1] + 1) ++gap;
    one_gap &= gap == end || (row[gap] > row[first] && row[end - 1] - row[gap] == end - 1 - gap);
    for (int j = 0; j < kLanes; ++j) before_gap[p][j] = first + j < gap ? -1 : 0;
  }
  if (one_gap)
    slice.for_each_shared_slot([&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
      const T* const x = v.x + delta;
      sums.add(values, [&](int p) SHARDMAT_INLINE_LAMBDA {
        const auto head = load<kLanes>(x + row[p * kLanes]);
        const auto tail = load<kLanes>(x + row[p * kLanes + kLanes - 1] - (kLanes - 1));
        return before_gap[p] ? head : tail;
      });
    });
  else
    slice.for_each_shared_slot([&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
      sums.add_gathered(values, v.x + delta, [&](int lane) SHARDMAT_INLINE_LAMBDA { return row[lane]; });
    });
  slice.for_each_other_slot([&](const T* values, const auto& column)
                                SHARDMAT_INLINE_LAMBDA { sums.add_gathered(values, v.x, column); });
  T sum[kPackedLanes];
  std::memcpy(sum, sums.sums, sizeof sum);
  for (int lane = 0; lane < slice.rows(); ++lane) put<Set>(v.y[slice.row(lane)], v.alpha * sum[lane], v.beta);
}

std::unique_ptr<Plan> make_single_rows(std::shared_ptr<Storage> storage) {
  const auto& a = static_cast<const PackedStorage&>(*storage);
  std::vector<std::uint8_t> splits(static_cast<std::size_t>(a.slices));
  parallel_ranges(a.slices, kSplitGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t s = begin; s < end; ++s) splits[static_cast<std::size_t>(s)] = row_split(a, s);
  });
  return typed_plan<PackedStorage>(
      storage, [starts = packed::even_slice_starts(a), splits = std::move(splits), isa = instruction_set()]<class T>(
                   const PackedStorage& m, const Operands<T>& v, Stream&) {
        for_each_range(starts, isa, [&]<class Set>(Set, std::int64_t begin, std::int64_t end) SHARDMAT_INLINE_LAMBDA {
          for (std::int64_t s = begin; s < end; ++s) {
            const packed::SingleRowSlice<T> slice(m, s);
            const int split = splits[static_cast<std::size_t>(s)];
            if (split > 0) multiply_two_ranges<Set>(slice, split, v);
            else multiply_any_rows<Set>(slice, v);
          }
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
