// The two implementations of the conversion to column tiers: on the host and on a GPU. Internal to the format.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/formats/tiers.h"

namespace shardmat::tiers {

struct Builder {
  /// The number of nonzeros of each column.
  std::vector<std::int32_t> (*count_columns)(ConversionInput& input);
  /// Sets p.first_piece. Returns the class of each piece, as uint16; counts[c] becomes the number of pieces of class c.
  /// REQUIRES: p has `least` and its columns.
  Buffer (*classify_pieces)(ConversionInput& input, TiersPattern& p, std::vector<std::int32_t>& counts);
  /// Writes p.piece: pieces of a class in the order of their numbers. counts[c] pieces have class c; the first lies at
  /// first[c].
  void (*place_pieces)(const Buffer& classes, const std::vector<std::int32_t>& counts,
                       const std::vector<std::int32_t>& first, TiersPattern& p, Stream& stream);
  /// Writes the values, and with `structure` the columns. Leaves padding as it is.
  void (*fill)(TiersStorage& a, ConversionInput& input, bool structure);
};

extern const Builder host_builder;
extern const Builder cuda_builder;

}  // namespace shardmat::tiers
