// What a picture of an answer needs: where the nodes lie, which cells are between them, and which rows are theirs.
#pragma once

#include <cstdint>

#include "kernels/base/host_vector.h"
#include "partition/nodes/given_nodes.h"
#include "partition/nodes/mesh_cells.h"
#include "partition/source/row_source.h"

namespace shardmat {

struct MeshView {
  HostVector<double> points;      ///< three values each
  std::int64_t components = 1;    ///< unknowns of a point
  HostVector<std::int64_t> rows;  ///< of each point, in the original order of the matrix; −1: held, so that x is 0 there
  MeshCells cells;                ///< where none are known, each point is one
};

/// All nodes of a mesh file, held ones too; else the nodes of the matrix, as `files` or the source place them. Cells come
/// from a mesh file, or a generator. Throws Error(input) where nothing places the nodes, or files do not fit.
MeshView view_mesh(const NodeFiles& files, const RowSource& source, std::int64_t node_block_size);

}  // namespace shardmat
