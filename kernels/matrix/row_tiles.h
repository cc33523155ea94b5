// Cuts the rows of a matrix into tiles that read few different columns: neighbours in the graph of the pattern. Row i and
// the column diagonal + i are one vertex of this graph; other columns count for nothing.
//
// Vertices are first put into groups, a few hundred each: every vertex joins the neighbour with the most neighbours, which
// joins another in the same way, up to a vertex that leads itself. Tiles are then grown from group to neighbouring group.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/host_device.h"
#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// Groups of rows, numbered in the order of their leaders. Every row is in one.
struct RowGroups {
  HostVector<std::int32_t> of;          ///< for each row its group
  std::vector<std::int64_t> first{0};   ///< for each group, + 1: where its neighbours begin
  std::vector<std::int32_t> neighbour;  ///< other groups with a column of the group's rows, ascending

  std::int32_t count() const { return static_cast<std::int32_t>(first.size()) - 1; }
};

/// The larger of two ranks leads. No two vertices have the same.
SHARDMAT_HOST_DEVICE inline std::uint64_t rank_of_row(std::int32_t row, std::int64_t length) {
  auto hash = static_cast<std::uint32_t>(row);
  hash = (hash ^ hash >> 16) * 0x7feb352du;
  hash = (hash ^ hash >> 15) * 0x846ca68bu;
  return static_cast<std::uint64_t>(length) << 32 | (hash ^ hash >> 16);
}

/// Takes 12 bytes a row and 4 for each pair of neighbours, on all threads. REQUIRES: fewer than 2^31 rows.
RowGroups group_rows(const CsrView& matrix);

/// Every row is in one tile. Tile t has the rows order[first[t]] … order[first[t + 1] - 1].
struct RowTiles {
  HostVector<std::int32_t> order;
  std::vector<std::int64_t> first{0};

  std::int64_t count() const { return static_cast<std::int64_t>(first.size()) - 1; }
};

/// Tiles of about `nonzeros` nonzeros: less than one row more than that, and the last tile fewer. They depend only on the
/// groups and the lengths of the rows. REQUIRES: the groups of this matrix, nonzeros > 0.
RowTiles tile_rows(const CsrView& matrix, const RowGroups& groups, std::int64_t nonzeros);

}  // namespace shardmat
