// The two implementations of the conversion to tiled rows: on the host and on a GPU. Internal to the format.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/formats/tiled.h"
#include "kernels/matrix/row_tiles.h"

namespace shardmat::tiled {

struct Builder {
  RowGroups (*group)(ConversionInput& input);
  /// The number of different columns of each tile; kTiledMostColumns + 1 if there are more than kTiledMostColumns.
  std::vector<std::int32_t> (*count_columns)(ConversionInput& input, const RowTiles& tiles);
  /// Writes the columns of each tile, ascending, to their place in p.columns.
  void (*write_columns)(ConversionInput& input, const RowTiles& tiles, TiledPattern& p);
  /// Writes the values, and with `structure` the local columns.
  void (*fill)(TiledStorage& tiled, ConversionInput& input, bool structure);
};

extern const Builder host_builder;
extern const Builder cuda_builder;

}  // namespace shardmat::tiled
