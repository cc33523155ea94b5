// Cuts the rows of a matrix into tiles that read few different columns: neighbours in the graph of the pattern.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// Every row is in one tile. Tile t has the rows order[first[t]] … order[first[t + 1] - 1].
struct RowTiles {
  HostVector<std::int32_t> order;
  std::vector<std::int64_t> first{0};

  std::int64_t count() const { return static_cast<std::int64_t>(first.size()) - 1; }
};

/// Tiles of about `nonzeros` nonzeros: less than one row more than that, and the last tile fewer. Row i and the column
/// matrix.diagonal + i are one vertex of the graph; other columns count for nothing. Each vertex first joins the neighbour
/// with the largest hash, and so do they, until some ten thousand groups remain. Tiles are then grown from group to
/// neighbouring group. The tiles depend only on the pattern. Takes 12 bytes a row and 4 bytes for each pair of neighbouring
/// groups, on up to all threads. REQUIRES: fewer than 2^31 rows, nonzeros > 0.
RowTiles tile_rows(const CsrView& matrix, std::int64_t nonzeros);

}  // namespace shardmat
