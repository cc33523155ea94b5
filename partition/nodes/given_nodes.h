// What files say about the nodes of a matrix, in place of what its source knows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "partition/hdf5/input.h"
#include "partition/nodes/mesh_file.h"
#include "partition/source/node_facts.h"
#include "partition/source/row_source.h"

namespace shardmat {

/// Names of files; empty: what the source knows.
struct NodeFiles {
  std::string coordinates;  ///< a line for each node, with 2 or 3 numbers, or 3 and its axes: 12; or a mesh (mesh_file.h)
  std::string mid_edges;    ///< a line for each node in the middle of an edge: the node and the ends; they count from 0
  std::string near_null_vectors;  ///< a row for each row of the matrix

  bool empty() const { return coordinates.empty() && mid_edges.empty() && near_null_vectors.empty(); }
  /// Those that are HDF5 files of other programs, for describe_on_all_ranks().
  std::vector<Hdf5Input> hdf5_inputs() const;
};

/// What the files say, else what the source knows, which must live as long as the result. Files are vectors, in any format
/// that VectorFile reads, or a mesh, whose mid-edge nodes are taken, too. `mesh`: what place_mesh() gives for it, if it was
/// called before. Throws Error(input) with file and line for files that do not fit a matrix whose nodes have
/// `node_block_size` unknowns.
std::unique_ptr<NodeFacts> open_node_files(const NodeFiles& files, const RowSource& source, std::int64_t node_block_size,
                                           std::optional<PlacedMesh> mesh = {});

}  // namespace shardmat
