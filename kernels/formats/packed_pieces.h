// How the rows of a group fall into pieces, and slots into kinds: the one definition that counting, filling and updating share,
// on the host and on the device.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/formats/packed.h"

#ifdef __CUDACC__
#define SHARDMAT_HOST_DEVICE __host__ __device__
#else
#define SHARDMAT_HOST_DEVICE
#endif

namespace shardmat::packed {

/// CSR as the conversion reads it: 64-bit columns on the host; on the device 32-bit ones, and offsets of either width.
template <class Column>
struct Source {
  std::int64_t rows, cols;
  const std::int32_t* narrow_row_ptr;  ///< null if offsets are wide
  const std::int64_t* row_ptr;
  const Column* col_idx;
  std::int64_t first = 0;  ///< row_ptr[0], subtracted

  SHARDMAT_HOST_DEVICE std::int64_t offset(std::int64_t row) const {
    return narrow_row_ptr != nullptr ? narrow_row_ptr[row] : row_ptr[row] - first;
  }
};

/// Walks the pieces of one group from left to right. Rows outside the matrix are empty.
template <int B, int W, class Column>
class PieceReader {
 public:
  SHARDMAT_HOST_DEVICE PieceReader(const Source<Column>& a, std::int64_t first_row) : a_(a) {
    for (int r = 0; r < B; ++r) {
      const std::int64_t row = first_row + r;
      const bool inside = row >= 0 && row < a.rows;
      at_[r] = inside ? a.offset(row) : 0;
      end_[r] = inside ? a.offset(row + 1) : 0;
    }
  }

  /// First column of the next piece, or -1 if there is none. Singles before it are passed over.
  SHARDMAT_HOST_DEVICE std::int64_t find_piece() {
    if constexpr (B == 1) {
      while (at_[0] < end_[0] && !run_here()) ++at_[0];
      return at_[0] < end_[0] ? a_.col_idx[at_[0]] : -1;
    }
    std::int64_t start = a_.cols;
    for (int r = 0; r < B; ++r)
      if (at_[r] < end_[r] && a_.col_idx[at_[r]] < start) start = a_.col_idx[at_[r]];
    if (start == a_.cols) return -1;
    return start + W <= a_.cols ? start : a_.cols - W;
  }

  /// Column of the next single, or -1. Pieces before it are passed over.
  SHARDMAT_HOST_DEVICE std::int64_t find_single() {
    while (at_[0] < end_[0] && run_here()) at_[0] += W;
    return at_[0] < end_[0] ? a_.col_idx[at_[0]] : -1;
  }

  /// Passes the piece of `Width` columns that starts at `start`, calling entry(column of the piece, row of the group, position of
  /// the nonzero or -1) for each of its places.
  template <int Width, class Entry>
  SHARDMAT_HOST_DEVICE void take(std::int64_t start, const Entry& entry) {
    for (int r = 0; r < B; ++r)
      for (int j = 0; j < Width; ++j) {
        const bool here = at_[r] < end_[r] && a_.col_idx[at_[r]] == start + j;
        entry(j, r, here ? at_[r] : std::int64_t{-1});
        at_[r] += here ? 1 : 0;
      }
  }
  template <int Width>
  SHARDMAT_HOST_DEVICE void skip(std::int64_t start) {
    take<Width>(start, [](int, int, std::int64_t) {});
  }

 private:
  /// B = 1: the next W nonzeros are consecutive columns.
  SHARDMAT_HOST_DEVICE bool run_here() const {
    return W == 1 || (at_[0] + W <= end_[0] && a_.col_idx[at_[0] + W - 1] == a_.col_idx[at_[0]] + (W - 1));
  }

  const Source<Column>& a_;
  std::int64_t at_[B], end_[B];
};

/// Slots of a slice by kind, and where its parts lie.
struct SliceCounts {
  std::uint32_t pieces[kPackedSlotKinds] = {0, 0, 0};
  std::uint32_t singles[kPackedSlotKinds] = {0, 0, 0};

  SHARDMAT_HOST_DEVICE std::uint32_t piece_slots() const { return pieces[0] + pieces[1] + pieces[2]; }
  SHARDMAT_HOST_DEVICE std::uint32_t single_slots() const { return singles[0] + singles[1] + singles[2]; }
  /// Deltas of the pieces; those of the singles follow.
  SHARDMAT_HOST_DEVICE std::uint32_t piece_deltas() const { return pieces[kSharedSlot] + pieces[kNarrowSlot]; }
  SHARDMAT_HOST_DEVICE std::uint32_t deltas() const {
    return piece_deltas() + singles[kSharedSlot] + singles[kNarrowSlot];
  }
  /// In 16-bit indices; those of the singles follow.
  SHARDMAT_HOST_DEVICE std::uint64_t piece_indices() const {
    return std::uint64_t{kPackedLanes} * (pieces[kNarrowSlot] + 2 * pieces[kFullSlot]);
  }
  SHARDMAT_HOST_DEVICE std::uint64_t indices() const {
    return piece_indices() + std::uint64_t{kPackedLanes} * (singles[kNarrowSlot] + 2 * singles[kFullSlot]);
  }
  SHARDMAT_HOST_DEVICE std::uint64_t values(const PackedShape& shape) const {
    return std::uint64_t{kPackedLanes} * (std::uint64_t{piece_slots()} * shape.rows * shape.width + single_slots());
  }
  SHARDMAT_HOST_DEVICE bool only_shared() const {
    return pieces[kNarrowSlot] + pieces[kFullSlot] + singles[kNarrowSlot] + singles[kFullSlot] == 0;
  }
};

SHARDMAT_HOST_DEVICE inline std::uint64_t units(std::uint64_t bytes) { return (bytes + kPackedUnit - 1) / kPackedUnit; }

/// What a slice takes in each array.
struct SliceSizes {
  std::uint64_t value_units = 0, index_units = 0, deltas = 0, order = 0;
  std::uint64_t hash[2] = {0, 0};  ///< of the deltas, if they may be shared with other slices; else 0
  bool csr = false;

  SHARDMAT_HOST_DEVICE std::uint64_t bytes() const { return kPackedUnit * (value_units + index_units) + 4 * (deltas + order); }
};

/// Chooses between slots and CSR rows for a slice with `nnz` nonzeros.
SHARDMAT_HOST_DEVICE inline SliceSizes slice_sizes(const SliceCounts& counts, const PackedShape& shape, int value_bytes,
                                                   std::uint64_t nnz, bool consecutive, const std::uint64_t (&hash)[2]) {
  SliceSizes slots, rows;
  slots.order = rows.order = consecutive ? 0 : kPackedLanes;
  slots.value_units = units(counts.values(shape) * value_bytes);
  slots.index_units = units(counts.indices() * 2);
  slots.deltas = counts.deltas();
  rows.csr = true;
  rows.value_units = units(nnz * value_bytes);
  rows.index_units = units(nnz * 4);
  rows.deltas = std::uint64_t{kPackedLanes} * shape.rows + 1;
  const bool too_long = counts.piece_slots() > 0xffff || counts.single_slots() > 0xffff;
  if (too_long || slots.bytes() > rows.bytes()) return rows;
  if (counts.only_shared() && slots.deltas > 0) slots.hash[0] = hash[0], slots.hash[1] = hash[1];
  return slots;
}

/// Folds a delta into two independent 64-bit hashes.
SHARDMAT_HOST_DEVICE inline void fold_delta(std::uint64_t (&hash)[2], std::int32_t delta) {
  const std::uint64_t word = static_cast<std::uint32_t>(delta);
  hash[0] = (hash[0] ^ (word + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
  hash[0] ^= hash[0] >> 29;
  hash[1] = (hash[1] + word + 1) * 0x94d049bb133111ebu;
  hash[1] ^= hash[1] >> 31;
}

/// Key that sorts groups within their window by falling number of pieces, then of singles.
SHARDMAT_HOST_DEVICE inline std::uint64_t sort_key(std::int64_t group, int window, std::uint64_t pieces, std::uint64_t singles) {
  constexpr std::uint64_t kMost = 0xffff;
  const auto falling = [](std::uint64_t count) { return count < kMost ? kMost - count : 0; };
  return static_cast<std::uint64_t>(group / window) << 32 | falling(pieces) << 16 | falling(singles);
}

/// Calls f with the rows and the width of a piece as integral constants.
template <class F>
decltype(auto) with_shape(const PackedShape& shape, F&& f) {
#define SHARDMAT_SHAPE(B, W)                      \
  if (shape.rows == (B) && shape.width == (W))    \
    return f(std::integral_constant<int, B>{}, std::integral_constant<int, W>{});
  SHARDMAT_SHAPE(1, 1)
  SHARDMAT_SHAPE(1, 2)
  SHARDMAT_SHAPE(1, 3)
  SHARDMAT_SHAPE(1, 4)
  SHARDMAT_SHAPE(2, 2)
  SHARDMAT_SHAPE(3, 3)
  SHARDMAT_SHAPE(4, 4)
  SHARDMAT_SHAPE(6, 6)
#undef SHARDMAT_SHAPE
  throw Error(ErrorKind::usage, "packed: rows and width of a piece must be 1×1, 1×2, 1×3, 1×4, 2×2, 3×3, 4×4 or 6×6");
}

}  // namespace shardmat::packed
