// Slices of packed rows with block = lanes = 1, as host kernels read them: 32 rows side by side, whose values lie one after
// another in each slot. Row sums go over the shared slots, then the narrow, then the full ones; rows that a slice stores as
// CSR are summed as csr_host sums them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/formats/packed_pieces.h"
#include "kernels/host/even_starts.h"
#include "kernels/host/lanes.h"

namespace shardmat::packed {

using SingleRows = Shape<1, 1>;

inline bool has_single_rows(const PackedStorage& a) { return a.shape.block == 1 && a.shape.lanes == 1; }

/// First slices of ranges of about equal bytes, then the number of slices.
inline std::vector<std::int64_t> even_slice_starts(const PackedStorage& a) {
  const auto* slices = a.slice.as<PackedSlice>();
  const std::int64_t values_of_unit = kPackedUnit / static_cast<std::int64_t>(size_of(a.type));
  return even_starts(a.slices, [&](std::int64_t s) {  // values lie in the order of the slices
    return s < a.slices ? slices[s].values * values_of_unit + s * kPackedLanes : a.nnz + s * kPackedLanes;
  });
}

/// The row of each lane of a slice. Lanes behind the last row do as it does, with values that are zeros.
struct RowsOfLanes {
  std::int64_t row[kPackedLanes];
  SHARDMAT_INLINE std::int64_t operator[](int lane) const { return row[lane]; }
};

/// A slice and its slots.
template <class T>
class SingleRowSlice {
 public:
  SHARDMAT_INLINE SingleRowSlice(const PackedStorage& a, std::int64_t s)
      : slice_(a.slice.as<PackedSlice>()[s]),
        values_(reinterpret_cast<const T*>(a.values.as<char>() + std::uint64_t{slice_.values} * kPackedUnit)),
        indices_(a.indices.as<char>() + std::uint64_t{slice_.indices} * kPackedUnit),
        deltas_(a.deltas.as<std::int32_t>() + slice_.deltas),
        order_(slice_.consecutive != 0 ? nullptr : a.order.as<std::uint32_t>() + slice_.groups) {}

  int rows() const { return slice_.real; }
  /// The row of a lane. REQUIRES: lane < rows().
  std::int64_t row(int lane) const {
    return order_ != nullptr ? order_[lane] : slice_.groups + static_cast<std::uint32_t>(lane);
  }
  RowsOfLanes rows_of_lanes() const {
    RowsOfLanes all;
    for (int lane = 0; lane < kPackedLanes; ++lane) all.row[lane] = row(std::min(lane, rows() - 1));
    return all;
  }

  // Of a slice that is stored as CSR.
  bool is_csr() const { return slice_.csr != 0; }
  const T* csr_values(int lane) const { return values_ + deltas_[lane]; }
  const std::int32_t* csr_columns(int lane) const { return reinterpret_cast<const std::int32_t*>(indices_) + deltas_[lane]; }
  std::int64_t csr_count(int lane) const { return deltas_[lane + 1] - deltas_[lane]; }

  /// Calls shared(values, delta) for each shared slot. `values` are those of the 32 lanes. `fetches`: values come from
  /// memory, not from a cache where an earlier walk has left them.
  template <class Shared>
  SHARDMAT_INLINE void for_each_shared_slot(const Shared& shared, bool fetches = true) const {
    const T* values = values_;
    for (std::uint32_t k = 0; k < slice_.slots[kSharedSlot]; ++k, values += kPackedLanes) {
      if (fetches) prefetch(values);
      shared(values, deltas_[k]);
    }
  }
  /// Calls other(values, column) for the narrow and then the full slots, where column(lane) is a lane's column.
  template <class Other>
  SHARDMAT_INLINE void for_each_other_slot(const Other& other, bool fetches = true) const {
    const SlotCounts<SingleRows> counts(slice_);
    const T* values = values_ + std::size_t{counts.of[kSharedSlot]} * kPackedLanes;
    for (std::uint32_t k = 0; k < counts.of[kNarrowSlot]; ++k, values += kPackedLanes) {
      if (fetches) prefetch(values);
      const char* slot = indices_ + std::uint64_t{k} * SingleRows::kNarrowBytes;
      const std::int64_t base = *reinterpret_cast<const std::int32_t*>(slot);
      const auto* difference = reinterpret_cast<const std::uint16_t*>(slot + 4);
      other(values, [=](int lane) SHARDMAT_INLINE_LAMBDA { return base + difference[lane]; });
    }
    const auto* column = reinterpret_cast<const std::int32_t*>(indices_ + counts.narrow_bytes());
    for (std::uint32_t k = 0; k < counts.of[kFullSlot]; ++k, values += kPackedLanes, column += kPackedLanes) {
      if (fetches) prefetch(values);
      other(values, [=](int lane) SHARDMAT_INLINE_LAMBDA { return std::int64_t{column[lane]}; });
    }
  }

 private:
  /// A slot of values a page ahead: with so little arithmetic between the loads, the CPU by itself prefetches too late.
  SHARDMAT_INLINE static void prefetch(const T* values) {
    for (std::size_t line = 0; line < kPackedLanes * sizeof(T); line += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(values) + 4096 + line);
  }

  const PackedSlice& slice_;
  const T* values_;
  const char* indices_;
  const std::int32_t* deltas_;
  const std::uint32_t* order_;  ///< rows of the lanes; null: they are consecutive
};
static_assert(SingleRows::kInterleaved<double> == 1 && SingleRows::kInterleaved<float> == 1 &&
              SingleRows::kValues == kPackedLanes);

}  // namespace shardmat::packed
