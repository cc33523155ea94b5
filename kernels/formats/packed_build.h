// The two implementations of the conversion to packed rows, and what else needs to know slices. Internal to the format.
#pragma once

#include <memory>

#include "kernels/formats/packed.h"

namespace shardmat::packed {

struct Builder {
  /// Groups in order, slices counted and placed: everything but deltas, indices and values, which are not allocated yet.
  /// `bytes` is exact.
  std::shared_ptr<PackedStorage> (*analyse)(ConversionInput& input, const PackedShape& shape);
  /// Writes the values, and with `structure` the deltas and indices.
  void (*fill)(PackedStorage& packed, ConversionInput& input, bool structure);
};

extern const Builder host_builder;
extern const Builder cuda_builder;

/// Marks the slices that read entries of x from `first` on, and the last. For matrices on a GPU. False if kernels there cannot
/// begin early, or there is no memory to find out.
bool mark_late(PackedStorage& packed, std::int64_t first, Stream& stream);

}  // namespace shardmat::packed
