#include "kernels/formats/packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/base/narrow.h"
#include "kernels/formats/packed_build.h"
#include "kernels/formats/packed_pieces.h"

namespace shardmat {
namespace {

using packed::Builder;

PackedShape shape_of(const ConversionInput& input, const Policy& layout) {
  PackedShape shape;
  shape.block = layout.at("block"), shape.lanes = layout.at("lanes");
  shape.shift = layout.at("shift"), shape.window = layout.at("window");
  packed::with_shape(shape, [](auto) {});
  if (shape.shift < 0 || shape.shift >= shape.block)
    throw Error(ErrorKind::usage,
                fmt::format("packed: shift must be from 0 to {}, one less than the block", shape.block - 1));
  if (shape.window < 1) throw Error(ErrorKind::usage, "packed: window must be at least 1 (no sorting)");
  if (shape.block > 1 && shape.block > input.matrix().cols)
    throw Error(ErrorKind::usage, fmt::format("packed: blocks of {} columns are wider than the matrix ({})", shape.block,
                                              input.matrix().cols));
  narrow<std::int32_t>(input.matrix().rows + shape.block, "rows of a packed matrix");
  return shape;
}

const Builder& builder_for([[maybe_unused]] const ConversionInput& input) {
#ifdef SHARDMAT_HAVE_CUDA
  if (input.stream().device().backend == Backend::cuda) return packed::cuda_builder;
#endif
  return packed::host_builder;
}

/// The analysis of a layout, kept from bytes() until convert() completes and takes it.
std::shared_ptr<PackedStorage>& analysed(ConversionInput& input, const Policy& layout) {
  const PackedShape shape = shape_of(input, layout);
  const auto analyse = [&] { return builder_for(input).analyse(input, shape); };
  auto& kept = input.remember<std::shared_ptr<PackedStorage>>("packed " + layout.text(), analyse);
  if (!kept) kept = analyse();
  return kept;
}

}  // namespace

std::int64_t packed_bytes(ConversionInput& input, const Policy& layout) { return analysed(input, layout)->bytes; }

std::shared_ptr<Storage> convert_packed(ConversionInput& input, const Policy& layout) {
  const std::shared_ptr<PackedStorage> packed = std::move(analysed(input, layout));
  packed->allocate(input.stream());
  builder_for(input).fill(*packed, input, true);
  return packed;
}

void update_packed(Storage& storage, ConversionInput& input) {
  builder_for(input).fill(static_cast<PackedStorage&>(storage), input, false);
}

void PackedStorage::set_sizes(const ConversionInput& input, std::uint64_t value_units, std::uint64_t index_units,
                              std::uint64_t delta_count, std::uint64_t order_count) {
  if (std::max({value_units, index_units, delta_count, order_count}) > std::numeric_limits<std::uint32_t>::max())
    throw Error(ErrorKind::resources, "the matrix is too large for the packed format on one device; use more GPUs");
  value_bytes = static_cast<std::int64_t>(value_units) * kPackedUnit;
  index_bytes = static_cast<std::int64_t>(index_units) * kPackedUnit;
  delta_bytes = static_cast<std::int64_t>(delta_count) * 4;
  order_bytes = static_cast<std::int64_t>(order_count) * 4;
  describe(input,
           value_bytes + index_bytes + delta_bytes + order_bytes + slices * static_cast<std::int64_t>(sizeof(PackedSlice)));
}

void PackedStorage::expect_late([[maybe_unused]] std::int64_t first, [[maybe_unused]] Stream& stream) {
#ifdef SHARDMAT_HAVE_CUDA
  if (device.backend == Backend::cuda) expects_late = packed::mark_late(*this, first, stream);
#endif
}

void PackedStorage::allocate(Stream& stream) {
  deltas = Buffer(device, static_cast<std::size_t>(delta_bytes));
  fill_bytes(deltas.data(), 0, deltas.bytes(), stream);  // lists are rounded up
  indices = Buffer(device, static_cast<std::size_t>(index_bytes));
  values = Buffer(device, static_cast<std::size_t>(value_bytes));
  // Places between slices and kinds of slots belong to no nonzero. On the host each slice clears its own, so that no page is
  // touched before its slice is filled.
  if (device.backend == Backend::cuda) fill_bytes(values.data(), 0, values.bytes(), stream);
}

}  // namespace shardmat
