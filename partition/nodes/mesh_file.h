// Nodes in the input and result files of finite-element programs, by the numbers that these programs give them.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/host_vector.h"
#include "partition/nodes/mesh_cells.h"
#include "partition/source/node_facts.h"
#include "partition/source/row_source.h"

namespace shardmat {

struct MeshNodes {
  struct Node {
    std::int64_t number;
    std::array<double, 3> at;
  };
  std::vector<Node> nodes;
  std::vector<MidEdge> mid_edges;  ///< by the same numbers
  bool wants_cells = false;
  MeshCells cells{};  ///< by the same numbers, if they are wanted
};

/// A format of meshes. A new one is a file and a line in the list of mesh_file.cpp.
struct MeshFormat {
  std::string_view name, suffix;
  /// Appends nodes and mid-edge nodes in any order; a node that comes twice must lie where it lay. Throws Error(input) with
  /// file, line and remedy.
  void (*read)(const std::filesystem::path& path, MeshNodes& mesh);
};

/// A mesh by its numbers, the nodes sorted, each once; with cells of the highest dimension. Throws Error(input).
MeshNodes read_mesh(const std::string& file, bool wants_cells);
/// The place of a node in the list; −1 without one.
std::int64_t place_of(const MeshNodes& mesh, std::int64_t number);
/// What the rows are called: by the source, or a list beside its file; null if nothing tells. Throws Error(input), too, if a
/// node of the matrix stands for several; `mesh` is named then.
std::shared_ptr<const UnknownList> unknowns_in_mesh(const RowSource& source, const std::string& mesh);
/// Throws Error(input) unless the matrix, of which nothing tells what its rows are called, has as many nodes as the mesh.
void require_all_nodes(const MeshNodes& mesh, const RowSource& source, std::int64_t node_block_size,
                       const std::string& file);

/// True if the file's suffix is one of the list.
bool is_mesh_file(const std::string& path);

/// What a mesh file says about the nodes of a matrix, by the order of its rows.
struct PlacedMesh {
  HostVector<double> coordinates;  ///< three values a node; empty if the rows are not whole nodes
  std::vector<MidEdge> mid_edges;
  int near_null_count = 0;               ///< 0, or 6 rigid-body modes, if the rows are not whole nodes
  HostVector<double> near_null_vectors;  ///< row by row
};

/// Finds the nodes of the rows in a mesh file: by the numbers that the source has for them (RowSource::unknowns()), or the
/// list beside its file (unknowns_file()); without these, the nodes of the matrix are those of the mesh in ascending order.
/// Where some unknowns of nodes are held, and so are no rows, the rigid-body modes are made row by row. Throws Error(input).
PlacedMesh place_mesh(const std::string& file, const RowSource& source, std::int64_t node_block_size);

// For the formats.

/// True for an element that says something: nodes in the middle of edges, or a cell that is wanted.
inline bool is_wanted(const MeshElement& element, const MeshNodes& mesh) {
  return mesh.wants_cells || !element.ends.empty();
}
void add_element(const MeshElement& element, const std::vector<std::int64_t>& nodes, MeshNodes& mesh);

// The functions behind the lines of the list.
void read_abaqus_mesh(const std::filesystem::path& path, MeshNodes& mesh);
void read_frd_mesh(const std::filesystem::path& path, MeshNodes& mesh);
void read_gmsh_mesh(const std::filesystem::path& path, MeshNodes& mesh);

}  // namespace shardmat
