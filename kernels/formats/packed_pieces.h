// Defines how the rows of a group are cut into pieces, which kind a slot is, and where everything lies in a slice. Counting,
// filling, updating and multiplying share this definition, on the host and on the device.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/base/host_device.h"
#include "kernels/base/number_view.h"
#include "kernels/formats/packed.h"

namespace shardmat::packed {

/// The CSR matrix that the conversion reads. Column is std::int64_t on the host, where the arrays may hold 32-bit columns,
/// and std::int32_t on the device, where offsets have either width.
template <class Column>
struct Source {
  std::int64_t rows, cols;
  const std::int32_t* narrow_row_ptr;  ///< null if offsets are wide
  const std::int64_t* row_ptr;
  std::conditional_t<std::is_same_v<Column, std::int64_t>, ColumnPointer, const Column*> col_idx;
  std::int64_t first = 0;  ///< row_ptr[0], which is subtracted from all offsets

  SHARDMAT_HOST_DEVICE std::int64_t offset(std::int64_t row) const {
    return narrow_row_ptr != nullptr ? narrow_row_ptr[row] : row_ptr[row] - first;
  }
};

/// Walks the pieces of one group from left to right. Rows outside the matrix are empty.
template <int B, class Column>
class PieceReader {
 public:
  SHARDMAT_HOST_DEVICE PieceReader(const Source<Column>& a, std::int64_t first_row) : a_(&a) {
    for (int r = 0; r < B; ++r) {
      const std::int64_t row = first_row + r;
      const bool inside = row >= 0 && row < a.rows;
      at_[r] = inside ? a.offset(row) : 0;
      end_[r] = inside ? a.offset(row + 1) : 0;
      load(r);
    }
  }

  /// First column of the next piece, or -1 at the end. A piece that would extend beyond the matrix starts earlier.
  SHARDMAT_HOST_DEVICE std::int64_t find() const {
    Column start = static_cast<Column>(a_->cols);
    for (int r = 0; r < B; ++r) start = column_[r] < start ? column_[r] : start;
    if (start == a_->cols) return -1;
    return start + B <= a_->cols ? start : a_->cols - B;
  }

  /// Walks over the piece at column `start`: calls entry(column in the piece, row in the group, position of the nonzero or
  /// -1) for each of its B·B places.
  template <class Entry>
  SHARDMAT_HOST_DEVICE void take(std::int64_t start, const Entry& entry) {
    for (int j = 0; j < B; ++j)
      for (int r = 0; r < B; ++r) {
        const bool here = column_[r] == start + j;
        entry(j, r, here ? at_[r] : std::int64_t{-1});
        if (here) ++at_[r], load(r);
      }
  }
  SHARDMAT_HOST_DEVICE void skip(std::int64_t start) {
    take(start, [](int, int, std::int64_t) {});
  }

 private:
  SHARDMAT_HOST_DEVICE void load(int r) {
    column_[r] = at_[r] < end_[r] ? a_->col_idx[at_[r]] : static_cast<Column>(a_->cols);
  }

  const Source<Column>* a_;
  std::int64_t at_[B], end_[B];
  Column column_[B];  ///< column at at_; cols at the end of the row
};

SHARDMAT_HOST_DEVICE constexpr std::uint64_t round_up(std::uint64_t count, std::uint64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}
SHARDMAT_HOST_DEVICE inline std::uint64_t units(std::uint64_t bytes) { return (bytes + kPackedUnit - 1) / kPackedUnit; }
/// Units of a slice's values. If all lanes work, rounded up to whole cache lines, so that each load of a warp reads whole
/// lines; otherwise a slice of CSR rows would misalign all slices after it.
template <class S>
SHARDMAT_HOST_DEVICE std::uint64_t units_of_values(std::uint64_t bytes) {
  constexpr std::uint64_t kLine = 128;
  return units(S::kLanes == kPackedLanes ? round_up(bytes, kLine) : bytes);
}

/// Position of item `item` (of `items` in a slot) of slot k of n, if V slots are interleaved. The last n mod V slots are not
/// interleaved.
template <int V>
SHARDMAT_HOST_DEVICE constexpr std::uint64_t interleaved(std::uint32_t k, std::uint32_t item, std::uint32_t items,
                                                         [[maybe_unused]] std::uint32_t n) {
  if constexpr (V == 1) return std::uint64_t{k} * items + item;
  const std::uint64_t whole = n / V * V;
  return k < whole ? (std::uint64_t{k / V} * items + item) * V + k % V : whole * items + (k - whole) * items + item;
}

/// Where a slot's columns lie among the indices of a slice's narrow slots. V slots together have V bases of 32 bits, then
/// their interleaved 16-bit differences (column - base). Each of the last n mod V slots has its own base and differences.
struct NarrowPlace {
  std::uint64_t base, column;  ///< bytes from the first narrow slot
};
template <int V>
SHARDMAT_HOST_DEVICE constexpr NarrowPlace narrow_place(std::uint32_t k, std::uint32_t item, std::uint32_t slot_bytes,
                                                        std::uint32_t n) {
  if (k >= n / V * V) {
    const std::uint64_t start = std::uint64_t{k} * slot_bytes;
    return {start, start + 4 + 2 * item};
  }
  const std::uint64_t start = std::uint64_t{k / V * V} * slot_bytes;
  return {start + 4 * (k % V), start + 4 * V + 2 * (item * V + k % V)};
}

/// Sizes that the parameters B and L determine.
template <int B_, int L_>
struct Shape {
  static constexpr int B = B_, L = L_;
  static constexpr int kGroups = kPackedLanes / L;                     ///< of a slice
  static constexpr int kLanesOfPiece = L < B ? L : B;                  ///< that share a piece
  static constexpr int kColumns = B / kLanesOfPiece;                   ///< of a piece in one lane
  static constexpr int kPieces = L / kLanesOfPiece;                    ///< of a group in a slot
  static constexpr int kIndices = kGroups * kPieces;                   ///< of a slot
  static constexpr int kLanes = kGroups * L;                           ///< lanes that work: 32, or 30
  static constexpr int kOfLane = B * kColumns;                         ///< values of a lane in a slot
  static constexpr int kValues = kOfLane * kLanes;                     ///< of a slot
  static constexpr int kNarrowBytes = (4 + 2 * kIndices + 3) / 4 * 4;  ///< of the columns of a narrow slot
  static constexpr int kFullBytes = 4 * kIndices;
  static_assert(L == 1 || L % B == 0);

  /// Slots interleaved: what a lane loads at once. A lane a row runs best with many warps and small loads.
  template <class T>
  static constexpr int kInterleaved = B == 1 && L == 1 ? 1 : 16 / static_cast<int>(sizeof(T));

  /// Number within its slot of the value in column j, row r of piece i (counted over the groups).
  SHARDMAT_HOST_DEVICE static constexpr int value_of(int i, int j, int r) {
    return (j % kColumns * B + r) * kLanes + i * kLanesOfPiece + j / kColumns;
  }
};

/// Slots of a slice by kind, and where each kind's part begins. Parts begin at multiples of 16 bytes.
template <class S>
struct SlotCounts {
  std::uint32_t of[kPackedSlotKinds] = {0, 0, 0};

  SlotCounts() = default;
  SHARDMAT_HOST_DEVICE explicit SlotCounts(const PackedSlice& slice) {
    for (int k = 0; k < kPackedSlotKinds; ++k) of[k] = slice.slots[k];
  }
  /// Number of values before the first value of `kind`; by default the number of all values.
  SHARDMAT_HOST_DEVICE std::uint64_t values(int kind = kPackedSlotKinds) const {
    std::uint64_t count = 0;
    for (int k = 0; k < kind; ++k) count += round_up(std::uint64_t{of[k]} * S::kValues, 4);
    return count;
  }
  /// Bytes of the narrow slots' columns, which come before those of the full slots.
  SHARDMAT_HOST_DEVICE std::uint64_t narrow_bytes() const {
    return round_up(std::uint64_t{of[kNarrowSlot]} * S::kNarrowBytes, 16);
  }
  SHARDMAT_HOST_DEVICE std::uint64_t index_bytes() const {
    return narrow_bytes() + std::uint64_t{of[kFullSlot]} * S::kFullBytes;
  }
  /// Number of deltas of the shared slots.
  SHARDMAT_HOST_DEVICE std::uint64_t deltas() const { return round_up(std::uint64_t{of[kSharedSlot]} * S::kPieces, 4); }
};

constexpr std::uint64_t kMostPadding = 16;  ///< slots may be larger than CSR rows by one part in kMostPadding

/// The sizes of a slice in each array.
struct SliceSizes {
  std::uint64_t value_units = 0, index_units = 0, deltas = 0, order = 0;
  std::uint64_t hash[2] = {0, 0};  ///< hash of the deltas, to share equal deltas between slices; 0 without deltas
  bool csr = false;

  SHARDMAT_HOST_DEVICE std::uint64_t bytes() const {
    return kPackedUnit * (value_units + index_units) + 4 * (deltas + order);
  }
};

/// Chooses between slots and CSR rows for a slice with `nnz` nonzeros. Slots may be a little larger, because CSR rows take
/// three times as long. Hexahedral grids need this where rows of 27 pieces meet rows of 18.
template <class S>
SHARDMAT_HOST_DEVICE SliceSizes slice_sizes(const SlotCounts<S>& counts, int value_bytes, std::uint64_t nnz,
                                            bool consecutive, const std::uint64_t (&hash)[2]) {
  SliceSizes slots, rows;
  slots.order = rows.order = consecutive ? 0 : S::kGroups;
  slots.value_units = units_of_values<S>(counts.values() * value_bytes);
  slots.index_units = units(counts.index_bytes());
  slots.deltas = counts.deltas();
  rows.csr = true;
  rows.value_units = units_of_values<S>(nnz * value_bytes);
  rows.index_units = units(nnz * 4);
  rows.deltas = round_up(S::kGroups * S::B + 1, 4);
  if (slots.bytes() > rows.bytes() + rows.bytes() / kMostPadding) return rows;
  if (slots.deltas > 0) slots.hash[0] = hash[0], slots.hash[1] = hash[1];
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

/// The key that sorts the groups of a window by their longest row, long rows first. The longest row approximates the number
/// of pieces; counting pieces would take a pass over the columns. A window is a whole number of slices, so that no slice
/// holds the short rows of one window and the long rows of the next.
template <class Column>
SHARDMAT_HOST_DEVICE std::uint64_t sort_key(const Source<Column>& a, const PackedShape& shape, std::int64_t group,
                                            std::int64_t window) {
  constexpr std::uint64_t kMost = 0xffffffffu;
  std::uint64_t longest = 0;
  for (int r = 0; r < shape.block; ++r) {
    const std::int64_t row = group * shape.block - shape.shift + r;
    if (row < 0 || row >= a.rows) continue;
    const auto length = static_cast<std::uint64_t>(a.offset(row + 1) - a.offset(row));
    longest = longest < length ? length : longest;
  }
  return static_cast<std::uint64_t>(group / window) << 32 | (longest < kMost ? kMost - longest : 0);
}
/// True if slices with the most values should run first, so that the device does not wait for a long slice at the end. This
/// separates neighbouring slices, so it is used only if x (about as long as the shorter side of the matrix) fits in the L2
/// cache.
SHARDMAT_HOST_DEVICE inline bool longest_first(std::int64_t rows, std::int64_t cols, std::int64_t value_bytes) {
  constexpr std::int64_t kCachedBytes = 12 << 20;
  return (rows < cols ? rows : cols) * value_bytes <= kCachedBytes;
}
/// True for a slice whose lanes do not all share their columns. Kernels multiply such a slice by itself, slot by slot or row
/// by row.
SHARDMAT_HOST_DEVICE inline bool irregular(const PackedSlice& slice) {
  return slice.csr != 0 || slice.slots[kNarrowSlot] > 0 || slice.slots[kFullSlot] > 0;
}
/// True if irregular slices should run before all others. If they are few, as at the edges of a grid, each takes two to
/// three times as long as a regular slice, and the device would wait for irregular slices at the end.
inline bool irregular_first(std::int64_t irregular, std::int64_t slices) {
  return irregular > 0 && irregular <= slices / 16;
}
inline std::int64_t window_of(const PackedShape& shape) {
  const int groups = shape.groups_of_slice();
  return shape.window <= groups ? groups : shape.window / groups * groups;
}

/// The layouts that have a Shape: MAKE(rows of a block, lanes).
#define SHARDMAT_SHAPES_OF_SMALL_BLOCKS(MAKE) MAKE(1, 1) MAKE(1, 2) MAKE(1, 4) MAKE(2, 1) MAKE(2, 2)
#define SHARDMAT_SHAPES_OF_LARGE_BLOCKS(MAKE) MAKE(3, 1) MAKE(3, 3) MAKE(3, 6) MAKE(4, 4) MAKE(6, 6)

/// Calls f with the Shape of a layout. Throws Error(usage) for parameters without a Shape.
template <class F>
decltype(auto) with_shape(const PackedShape& shape, F&& f) {
#define SHARDMAT_SHAPE(B, L) \
  if (shape.block == (B) && shape.lanes == (L)) return f(Shape<B, L>{});
  SHARDMAT_SHAPES_OF_SMALL_BLOCKS(SHARDMAT_SHAPE)
  SHARDMAT_SHAPES_OF_LARGE_BLOCKS(SHARDMAT_SHAPE)
#undef SHARDMAT_SHAPE
  throw Error(ErrorKind::usage,
              "packed: block and lanes must be 1 and 1, 2 or 4; 2 and 1 or 2; 3 and 1, 3 or 6; 4 and 4; or 6 and 6");
}

}  // namespace shardmat::packed
