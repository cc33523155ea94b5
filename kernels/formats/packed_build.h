// The two implementations of the conversion to packed rows, and marking late slices. Internal to the format.
#pragma once

#include <memory>

#include "kernels/formats/packed.h"

namespace shardmat::packed {

struct Builder {
  /// Orders the groups, counts the slots of each slice, and places the slices. Deltas, indices and values are not allocated
  /// yet, but `bytes` is exact.
  std::shared_ptr<PackedStorage> (*analyse)(ConversionInput& input, const PackedShape& shape);
  /// Writes the values, and with `structure` the deltas and indices. On the host `structure` also clears the values of each
  /// slice before they are written, and releases the rows (ConversionInput::release()).
  void (*fill)(PackedStorage& packed, ConversionInput& input, bool structure);
};

extern const Builder host_builder;
extern const Builder cuda_builder;

/// Marks the slices that read x[first …], and the last slice. For matrices on a GPU. False if its kernels cannot begin
/// early, or if there is no memory to find these slices.
bool mark_late(PackedStorage& packed, std::int64_t first, Stream& stream);

/// Writes for each place of the values, on a GPU, its column; for padding any number. In stream order.
void find_columns(const PackedStorage& packed, std::int32_t* to, Stream& stream);

}  // namespace shardmat::packed
