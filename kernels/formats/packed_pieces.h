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
  SHARDMAT_HOST_DEVICE PieceReader(const Source<Column>& a, std::int64_t first_row) : a_(&a) {
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
      return at_[0] < end_[0] ? a_->col_idx[at_[0]] : -1;
    }
    std::int64_t start = a_->cols;
    for (int r = 0; r < B; ++r)
      if (at_[r] < end_[r] && a_->col_idx[at_[r]] < start) start = a_->col_idx[at_[r]];
    if (start == a_->cols) return -1;
    return start + W <= a_->cols ? start : a_->cols - W;
  }

  /// Column of the next single, or -1. Pieces before it are passed over.
  SHARDMAT_HOST_DEVICE std::int64_t find_single() {
    while (at_[0] < end_[0] && run_here()) at_[0] += W;
    return at_[0] < end_[0] ? a_->col_idx[at_[0]] : -1;
  }

  /// Passes the piece (or single) of `Width` columns that starts at `start`, and what is before it, calling entry(column of the piece, row of the group, position of
  /// the nonzero or -1) for each of its places.
  template <int Width, class Entry>
  SHARDMAT_HOST_DEVICE void take(std::int64_t start, const Entry& entry) {
    for (int r = 0; r < B; ++r) {
      if constexpr (B == 1 && W > 1)
        while (at_[r] < end_[r] && a_->col_idx[at_[r]] < start) ++at_[r];
      for (int j = 0; j < Width; ++j) {
        const bool here = at_[r] < end_[r] && a_->col_idx[at_[r]] == start + j;
        entry(j, r, here ? at_[r] : std::int64_t{-1});
        at_[r] += here ? 1 : 0;
      }
    }
  }
  template <int Width>
  SHARDMAT_HOST_DEVICE void skip(std::int64_t start) {
    take<Width>(start, [](int, int, std::int64_t) {});
  }

 private:
  /// B = 1: the next W nonzeros are consecutive columns.
  SHARDMAT_HOST_DEVICE bool run_here() const {
    return W == 1 || (at_[0] + W <= end_[0] && a_->col_idx[at_[0] + W - 1] == a_->col_idx[at_[0]] + (W - 1));
  }

  const Source<Column>* a_;
  std::int64_t at_[B], end_[B];
};

/// What the shape fixes of a slot.
template <int B, int W, int L>
struct Slots {
  static constexpr int kGroups = kPackedLanes / L;        ///< of a slice
  static constexpr int kLanesOfPiece = L < W ? L : W;     ///< that share a piece
  static constexpr int kColumns = W / kLanesOfPiece;      ///< of a piece in one lane
  static constexpr int kPieces = L / kLanesOfPiece;       ///< of a group in a slot
  static constexpr int kIndices = kGroups * kPieces;      ///< of a slot
  static constexpr int kLanes = kGroups * L;              ///< lanes that work: 32, or 30
  static constexpr int kValues = B * kColumns * kLanes;   ///< of a slot

  /// Place among the values of a slot of column j and row r of piece i (counted over the groups).
  SHARDMAT_HOST_DEVICE static constexpr int place(int i, int j, int r) {
    return (j % kColumns * B + r) * kLanes + i * kLanesOfPiece + j / kColumns;
  }
};

/// Slots of one width in a slice, by kind.
struct SlotCounts {
  std::uint32_t of[kPackedSlotKinds] = {0, 0, 0};

  SHARDMAT_HOST_DEVICE std::uint32_t all() const { return of[0] + of[1] + of[2]; }
  template <class S>
  SHARDMAT_HOST_DEVICE std::uint32_t deltas() const { return of[kSharedSlot] * S::kPieces + of[kNarrowSlot]; }
  template <class S>
  SHARDMAT_HOST_DEVICE std::uint64_t index_bytes() const {
    return std::uint64_t{S::kIndices} * (4 * of[kFullSlot] + 2 * of[kNarrowSlot]);
  }
  template <class S>
  SHARDMAT_HOST_DEVICE std::uint64_t values() const { return std::uint64_t{S::kValues} * all(); }
};

/// Slots of a slice: of pieces, and (B = 1, W > 1) of singles, which are pieces of width 1. Singles lie behind the pieces in every
/// array; their indices start at a multiple of 4 bytes.
template <int B, int W, int L>
struct SliceCounts {
  using Pieces = Slots<B, W, L>;
  using Singles = Slots<B, 1, L>;
  SlotCounts pieces, singles;

  SliceCounts() = default;
  SHARDMAT_HOST_DEVICE explicit SliceCounts(const PackedSlice& slice) {
    for (int k = 0; k < kPackedSlotKinds; ++k) pieces.of[k] = slice.pieces[k], singles.of[k] = slice.singles[k];
  }
  SHARDMAT_HOST_DEVICE std::uint64_t single_indices() const { return (pieces.index_bytes<Pieces>() + 3) / 4 * 4; }
  SHARDMAT_HOST_DEVICE std::uint32_t deltas() const { return pieces.deltas<Pieces>() + singles.deltas<Singles>(); }
  SHARDMAT_HOST_DEVICE std::uint64_t index_bytes() const { return single_indices() + singles.index_bytes<Singles>(); }
  SHARDMAT_HOST_DEVICE std::uint64_t values() const { return pieces.values<Pieces>() + singles.values<Singles>(); }
  SHARDMAT_HOST_DEVICE bool only_shared() const {
    return pieces.all() == pieces.of[kSharedSlot] && singles.all() == singles.of[kSharedSlot];
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
template <int B, int W, int L>
SHARDMAT_HOST_DEVICE SliceSizes slice_sizes(const SliceCounts<B, W, L>& counts, int value_bytes, std::uint64_t nnz,
                                            bool consecutive, const std::uint64_t (&hash)[2]) {
  constexpr int kGroups = kPackedLanes / L;
  SliceSizes slots, rows;
  slots.order = rows.order = consecutive ? 0 : kGroups;
  slots.value_units = units(counts.values() * value_bytes);
  slots.index_units = units(counts.index_bytes());
  slots.deltas = counts.deltas();
  rows.csr = true;
  rows.value_units = units(nnz * value_bytes);
  rows.index_units = units(nnz * 4);
  rows.deltas = std::uint64_t{kGroups} * B + 1;
  const bool too_long = counts.pieces.all() > 0xffff || counts.singles.all() > 0xffff;
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

/// A shape at compile time.
template <int B_, int W_, int L_>
struct ShapeTag {
  static constexpr int B = B_, W = W_, L = L_;
};

/// Calls f with the ShapeTag of a shape. Throws Error(usage) if there is none.
template <class F>
decltype(auto) with_shape(const PackedShape& shape, F&& f) {
#define SHARDMAT_SHAPE(B, W, L) \
  if (shape.rows == (B) && shape.width == (W) && shape.lanes == (L)) return f(ShapeTag<B, W, L>{});
  SHARDMAT_SHAPE(1, 1, 1)
  SHARDMAT_SHAPE(1, 1, 2)
  SHARDMAT_SHAPE(1, 1, 4)
  SHARDMAT_SHAPE(1, 1, 8)
  SHARDMAT_SHAPE(1, 2, 2)
  SHARDMAT_SHAPE(1, 2, 4)
  SHARDMAT_SHAPE(1, 3, 3)
  SHARDMAT_SHAPE(1, 4, 4)
  SHARDMAT_SHAPE(2, 2, 1)
  SHARDMAT_SHAPE(2, 2, 2)
  SHARDMAT_SHAPE(3, 3, 1)
  SHARDMAT_SHAPE(3, 3, 3)
  SHARDMAT_SHAPE(3, 3, 6)
  SHARDMAT_SHAPE(4, 4, 1)
  SHARDMAT_SHAPE(4, 4, 4)
  SHARDMAT_SHAPE(6, 6, 6)
#undef SHARDMAT_SHAPE
  throw Error(ErrorKind::usage,
              "packed: rows × width × lanes must be 1×1×1, 1×1×2, 1×1×4, 1×1×8, 1×2×2, 1×2×4, 1×3×3, 1×4×4, 2×2×1, 2×2×2, 3×3×1, 3×3×3, "
              "3×3×6, 4×4×1, 4×4×4 or 6×6×6");
}

}  // namespace shardmat::packed
