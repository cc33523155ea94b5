// Packed rows: Shardmat's own format. It takes row block packing (Kawamura et al.) further: one column index serves a block
// of values, or the same block in every row of a warp, and a warp's worth of rows lies side by side as in sliced ELL, so
// that values stream at the copy rate.
//
//   group   B consecutive rows (a node's unknowns), multiplied by L lanes of a warp; their patterns are united
//   piece   B consecutive columns of a group, one column index for B·B values
//   slice   G = 32 / L groups; groups are sorted by their longest row within windows, and the order is folded into the
//           write of y
//   slot    the next piece (L > B: the next L / B pieces) of every group of a slice; with L ≥ B its columns lie in
//           neighbouring lanes, so that one load of x by the warp reads neighbouring entries. By how its columns are
//           stored a slot is
//             shared    column = first row of the group + deltas common to all groups: stencils, bands; nothing a row
//             narrow    column = one base for all + 16 bits each
//             full      32 bits each
//
// Slots of one kind are interleaved by V = 16 bytes / value (with B = L = 1 they are not), so that a lane loads the values
// of V slots at once. A slice that padding would make more than a sixteenth larger than CSR is stored as CSR rows.
//
// Stored zeros multiply entries of x that the row does not have: a non-finite x spreads to such rows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

constexpr int kPackedLanes = 32;  ///< of a warp
constexpr int kPackedUnit = 32;   ///< bytes; values and indices of a slice start at multiples of it

/// How a slot stores its columns.
enum PackedSlotKind { kSharedSlot, kNarrowSlot, kFullSlot, kPackedSlotKinds };

/// One slice. 32 bytes, read by all lanes of a warp at once.
struct alignas(16) PackedSlice {
  std::uint32_t values;                   ///< first value, in units; CSR rows: likewise
  std::uint32_t indices;                  ///< first index, in units: narrow slots, then full; CSR rows: columns
  std::uint32_t deltas;                   ///< first delta of the shared slots; CSR rows: G·B + 1 offsets
  std::uint32_t groups;                   ///< position in `order`, or the first group if the groups are consecutive
  std::uint32_t slots[kPackedSlotKinds];  ///< of each kind
  std::uint8_t real;                      ///< groups it has; the others of G are empty
  std::uint8_t consecutive;               ///< groups are consecutive
  std::uint8_t csr;                       ///< the slice is stored as CSR rows
  std::uint8_t late;                      ///< it reads entries of x that come late (Storage::expect_late())
};
static_assert(sizeof(PackedSlice) == 32);

/// What a layout fixes before anything is counted.
struct PackedShape {
  int block = 1;   ///< B, rows of a group and columns of a piece: 1, 2, 3, 4 or 6
  int lanes = 1;   ///< L, lanes of a group: 1 or a multiple of B
  int shift = 0;   ///< group g starts at row g·B - shift, 0 ≤ shift < B
  int window = 1;  ///< groups sorted together; rounded down to whole slices

  std::int64_t groups(std::int64_t matrix_rows) const { return (matrix_rows + shift + block - 1) / block; }
  int groups_of_slice() const { return kPackedLanes / lanes; }
  std::int64_t slices(std::int64_t matrix_rows) const {
    return (groups(matrix_rows) + groups_of_slice() - 1) / groups_of_slice();
  }
};

struct PackedStorage final : Storage {
  /// Sets the sizes of all arrays and so `bytes`. Throws Error(resources) if a slice's places do not fit 32 bits.
  void set_sizes(const ConversionInput& input, std::uint64_t value_units, std::uint64_t index_units,
                 std::uint64_t delta_count, std::uint64_t order_count);
  /// Makes the buffers of deltas, indices and values; deltas and values are 0.
  void allocate(Stream& stream);
  void expect_late(std::int64_t first, Stream& stream) override;
  std::vector<const Buffer*> value_arrays() const override { return {&values}; }

  PackedShape shape;
  std::int64_t slices = 0;
  struct {
    std::int64_t first = 0, count = 0;
  } late;  ///< slices that wait for x (PackedSlice::late), if they lie one behind the other
  std::int64_t value_bytes = 0, index_bytes = 0, delta_bytes = 0, order_bytes = 0;
  Buffer slice;    ///< PackedSlice[slices]
  Buffer order;    ///< uint32: groups of the slices that are not consecutive, G each
  Buffer deltas;   ///< int32
  Buffer indices;  ///< int32 and uint16, by slice: narrow, full slots
  Buffer values;   ///< by slice: shared, narrow, full slots
};

std::vector<Policy> packed_layouts(ConversionInput& input);
std::int64_t packed_bytes(ConversionInput& input, const Policy& layout);
/// About as many bytes, from a sample of the rows: nothing is converted, padding is not counted.
std::int64_t packed_estimate(ConversionInput& input, const Policy& layout);
/// The cost of packed_stencil (cost_model.h); infinite unless most rows have the columns of their neighbours.
double packed_stencil_cost(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_packed(ConversionInput& input, const Policy& layout);
void update_packed(Storage& storage, ConversionInput& input);

std::vector<Policy> packed_host_policies(const RowStatistics& rows);
std::unique_ptr<Plan> make_packed_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::vector<Policy> packed_policies(const RowStatistics& rows);
std::unique_ptr<Plan> make_packed(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::vector<Policy> packed_stencil_policies(const RowStatistics& rows);
bool packed_stencil_supports(const Storage& storage);
std::unique_ptr<Plan> make_packed_stencil(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
