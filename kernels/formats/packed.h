// Packed rows: Shardmat's own format, a development of row block packing (Kawamura et al.). One column index serves a block
// of values, or the same block in every row of a warp. The rows of a warp lie side by side as in sliced ELL, so that values
// stream at the copy rate.
//
//   group   B consecutive rows (the unknowns of a node), multiplied by L lanes of a warp; it has the union of their patterns
//   piece   B consecutive columns of a group, one column index for B·B values
//   slice   G = 32 / L groups; groups are sorted by their longest row within windows, and y is written through this order
//   slot    the next piece (L > B: the next L / B pieces) of every group of a slice; with L ≥ B its columns lie in
//           neighbouring lanes, so that one load of x by the warp reads neighbouring entries. A slot stores its columns in
//           one of three ways:
//             shared    column = first row of the group + delta; all groups share the deltas (stencils, bands)
//             narrow    column = base + 16 bits for each piece; the slot has one base
//             full      32 bits for each piece
//
// Slots of one kind are interleaved by V = 16 bytes / value (except for B = L = 1), so that a lane loads the values of V
// slots at once. If padding makes a slice more than a sixteenth larger than CSR, the slice is stored as CSR rows.
//
// Stored zeros are multiplied with entries of x that the row does not have: a non-finite x spreads to such rows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

constexpr int kPackedLanes = 32;  ///< lanes of a warp
constexpr int kPackedUnit = 32;   ///< in bytes: values and indices of a slice start at multiples of this unit

/// How a slot stores its columns.
enum PackedSlotKind { kSharedSlot, kNarrowSlot, kFullSlot, kPackedSlotKinds };

/// One slice. 32 bytes, read by all lanes of a warp at once.
struct alignas(16) PackedSlice {
  std::uint32_t values;                   ///< first value, in units
  std::uint32_t indices;                  ///< first index, in units: narrow slots, then full slots; CSR rows: columns
  std::uint32_t deltas;                   ///< first delta of the shared slots; CSR rows: G·B + 1 offsets
  std::uint32_t groups;                   ///< position in `order`, or the first group if the groups are consecutive
  std::uint32_t slots[kPackedSlotKinds];  ///< of each kind
  std::uint8_t real;                      ///< number of groups; the other groups up to G are empty
  std::uint8_t consecutive;               ///< 1: the groups are consecutive
  std::uint8_t csr;                       ///< 1: the slice is stored as CSR rows
  std::uint8_t late;                      ///< 1: the slice reads entries of x that arrive late (Storage::expect_late())
};
static_assert(sizeof(PackedSlice) == 32);

/// The parameters of a layout.
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
  /// Sets the sizes of all arrays, and `bytes`. Throws Error(resources) if positions in a slice header do not fit 32 bits.
  void set_sizes(const ConversionInput& input, std::uint64_t value_units, std::uint64_t index_units,
                 std::uint64_t delta_count, std::uint64_t order_count);
  /// Allocates deltas, indices and values; sets deltas to 0, on a GPU also values.
  void allocate(Stream& stream);
  void expect_late(std::int64_t first, Stream& stream) override;
  std::vector<const Buffer*> value_arrays() const override { return {&values}; }

  PackedShape shape;
  std::int64_t slices = 0;
  struct {
    std::int64_t first = 0, count = 0;
  } late;  ///< slices that wait for x (PackedSlice::late), if they are consecutive
  std::int64_t value_bytes = 0, index_bytes = 0, delta_bytes = 0, order_bytes = 0;
  Buffer slice;    ///< PackedSlice[slices]
  Buffer order;    ///< uint32: the G groups of each slice whose groups are not consecutive
  Buffer deltas;   ///< int32
  Buffer indices;  ///< int32 and uint16, by slice: narrow, full slots
  Buffer values;   ///< by slice: shared, narrow, full slots
};

std::vector<Policy> packed_layouts(ConversionInput& input);
/// The best of the layouts in which a lane has whole rows. On GPUs their kernels sum in one order (packed_sums_in_order()).
Policy packed_ordered_layout(ConversionInput& input);
/// SumsInOrder of the kernels for GPUs; of kernel `packed` the second.
bool packed_sums_in_order(ValueType type, const Policy& layout, const Policy& policy);
bool packed_parts_in_order(ValueType type, const Policy& layout, const Policy& policy);
std::int64_t packed_bytes(ConversionInput& input, const Policy& layout);
/// An estimate of packed_bytes() from a sample of the rows, without a conversion and without padding.
std::int64_t packed_estimate(ConversionInput& input, const Policy& layout);
/// The cost of packed_stencil (cost_model.h); infinite unless most rows have the same pattern as their neighbours, shifted.
double packed_stencil_cost(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_packed(ConversionInput& input, const Policy& layout);
void update_packed(Storage& storage, ConversionInput& input);

/// The cost of packed_host (cost_model.h). Layouts other than block = lanes = 1 have no fast kernel on the host.
double packed_host_cost(ConversionInput& input, const Policy& layout);
std::vector<Policy> packed_host_policies(const RowStatistics& rows);
std::unique_ptr<Plan> make_packed_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::vector<Policy> packed_policies(const RowStatistics& rows);
std::unique_ptr<Plan> make_packed(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
/// The cost of packed_small (cost_model.h); infinite for layouts that it cannot take.
double packed_small_cost(ConversionInput& input, const Policy& layout);
std::vector<Policy> packed_small_policies(const RowStatistics& rows);
bool packed_small_supports(const Storage& storage);
std::unique_ptr<Plan> make_packed_small(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::vector<Policy> packed_stencil_policies(const RowStatistics& rows);
bool packed_stencil_supports(const Storage& storage);
std::unique_ptr<Plan> make_packed_stencil(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
