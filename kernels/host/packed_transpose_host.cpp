// The transposed product of packed rows with block = lanes = 1 on host threads. Lanes behind the last row of a slice have
// values that are zeros and add to the columns of that row.
#include "kernels/host/packed_slices.h"
#include "kernels/host/scatter_plan.h"
#include "kernels/host/scatter_rows.h"

namespace shardmat {
namespace {

using packed::SingleRowSlice;

/// Lanes [0, split) are consecutive rows, and so are the others. 0: the rows lie otherwise, or are fewer than 32.
template <class T>
SHARDMAT_INLINE int split_of(const SingleRowSlice<T>& slice, const packed::RowsOfLanes& row) {
  if (slice.rows() < kPackedLanes) return 0;
  int split = 1;
  while (split < kPackedLanes && row[split] == row[split - 1] + 1) ++split;
  for (int lane = split + 1; lane < kPackedLanes; ++lane)
    if (row[lane] != row[lane - 1] + 1) return 0;
  return split;
}

struct ScatterPacked {
  static constexpr std::string_view name = "slices of packed rows, added to columns";

  template <class Set, class T>
  SHARDMAT_INLINE static void one(const PackedStorage& a, std::int64_t begin, std::int64_t end, const Scatter<T>& to) {
    for (std::int64_t s = begin; s < end; ++s) {
      const SingleRowSlice<T> slice(a, s);
      if (slice.is_csr()) {
        for (int lane = 0; lane < slice.rows(); ++lane)
          scatter_row<Set>(slice.csr_values(lane), slice.csr_columns(lane), slice.csr_count(lane), slice.row(lane), to);
        continue;
      }
      const packed::RowsOfLanes row = slice.rows_of_lanes();
      T of_x[kPackedLanes];
      for (int lane = 0; lane < kPackedLanes; ++lane) of_x[lane] = to.alpha * to.x[row[lane]];
      const int split = split_of(slice, row);
      if (split == kPackedLanes) add_run<Set>(slice, of_x, to.y + row[0]);
      else if (split > 0) add_two_runs<Set>(slice, of_x, split, to.y + row[0], to.y + row[split]);
      else
        slice.for_each_shared_slot([&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
          T* const y = to.y + delta;
          for (int lane = 0; lane < kPackedLanes; ++lane) add_product<Set>(y[row[lane]], values[lane], of_x[lane]);
        });
      slice.for_each_other_slot([&](const T* values, const auto& column) SHARDMAT_INLINE_LAMBDA {
        for (int lane = 0; lane < kPackedLanes; ++lane) add_product<Set>(to.y[column(lane)], values[lane], of_x[lane]);
      });
    }
  }

  template <class Set, class T>
  SHARDMAT_INLINE static void several(const PackedStorage& a, std::int64_t begin, std::int64_t end, const Scatter<T>& to,
                                      std::int64_t right_hand_sides) {
    for (std::int64_t s = begin; s < end; ++s) {
      const SingleRowSlice<T> slice(a, s);
      if (slice.is_csr()) {
        for (int lane = 0; lane < slice.rows(); ++lane)
          scatter_row<Set>(slice.csr_values(lane), slice.csr_columns(lane), slice.csr_count(lane), slice.row(lane), to,
                           right_hand_sides);
        continue;
      }
      const packed::RowsOfLanes row = slice.rows_of_lanes();
      constexpr int kWidest = static_cast<int>(2 * Set::kBytes / sizeof(T));
      for_each_group<kWidest>(right_hand_sides,
                              [&]<int W>(std::integral_constant<int, W>, std::int64_t first) SHARDMAT_INLINE_LAMBDA {
                                constexpr int kLanes = kLanesOfGroup<Set, T, W>, kPacks = W / kLanes;
                                const auto add = [&](const T* values, const auto& column) SHARDMAT_INLINE_LAMBDA {
                                  for (int lane = 0; lane < kPackedLanes; ++lane)
                                    for (int p = 0; p < kPacks; ++p)
                                      to.template add<Set, kLanes>(column(lane), first + p * kLanes, values[lane],
                                                                   to.template of_x<kLanes>(row[lane], first + p * kLanes));
                                };
                                slice.for_each_shared_slot([&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
                                  add(values, [&](int lane) SHARDMAT_INLINE_LAMBDA { return row[lane] + delta; });
                                });
                                slice.for_each_other_slot(add);
                              });
    }
  }

 private:
  /// Shared slots of 32 consecutive rows: whole vectors.
  template <class Set, class T>
  SHARDMAT_INLINE static void add_run(const SingleRowSlice<T>& slice, const T* of_x, T* y) {
    constexpr int kLanes = static_cast<int>(Set::kBytes / sizeof(T)), kPacks = kPackedLanes / kLanes;
    Lanes<T, kLanes> x[kPacks];
    for (int p = 0; p < kPacks; ++p) x[p] = load<kLanes>(of_x + p * kLanes);
    slice.for_each_shared_slot([&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
      T* const at = y + delta;
#pragma GCC unroll 16
      for (int p = 0; p < kPacks; ++p) {
        auto sum = load<kLanes>(at + p * kLanes);
        add_product<Set>(sum, load<kLanes>(values + p * kLanes), x[p]);
        store(at + p * kLanes, sum);
      }
    });
  }
  /// The same for lanes before and behind a gap between the rows.
  template <class Set, class T>
  SHARDMAT_INLINE static void add_two_runs(const SingleRowSlice<T>& slice, const T* of_x, int split, T* first, T* second) {
    slice.for_each_shared_slot([&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
      T* at = first + delta;
      for (int lane = 0; lane < split; ++lane) add_product<Set>(at[lane], values[lane], of_x[lane]);
      at = second + delta - split;
      for (int lane = split; lane < kPackedLanes; ++lane) add_product<Set>(at[lane], values[lane], of_x[lane]);
    });
  }
};

ColumnSpan columns_of(const PackedStorage& a, std::int64_t begin, std::int64_t end) {
  ColumnSpan span;
  for (std::int64_t s = begin; s < end; ++s)
    dispatch(a.type, [&]<class Tag>(Tag) {
      const SingleRowSlice<typename Tag::type> slice(a, s);
      if (slice.is_csr()) {
        for (int lane = 0; lane < slice.rows(); ++lane)
          for (std::int64_t k = 0; k < slice.csr_count(lane); ++k) span.add(slice.csr_columns(lane)[k]);
        return;
      }
      const packed::RowsOfLanes row = slice.rows_of_lanes();
      const auto [least, most] = std::minmax_element(std::begin(row.row), std::end(row.row));
      slice.for_each_shared_slot(
          [&](const auto*, std::int32_t delta) { span.add(*least + delta), span.add(*most + delta); });
      slice.for_each_other_slot([&](const auto*, const auto& column) {
        for (int lane = 0; lane < kPackedLanes; ++lane) span.add(column(lane));
      });
    });
  return span;
}

}  // namespace

bool packed_transpose_host_supports(const Storage& storage) {
  return packed::has_single_rows(static_cast<const PackedStorage&>(storage));
}

std::unique_ptr<TransposePlan> make_packed_transpose_host(std::shared_ptr<const Storage> storage,
                                                          const TransposeShape& shape) {
  auto a = std::static_pointer_cast<const PackedStorage>(std::move(storage));
  auto ranges = windowed_ranges(packed::even_slice_starts(*a), a->nnz, shape.entries,
                                [&](std::int64_t begin, std::int64_t end) { return columns_of(*a, begin, end); });
  return std::make_unique<ScatterPlan<PackedStorage, ScatterPacked>>(std::move(a), shape, std::move(ranges));
}

}  // namespace shardmat
