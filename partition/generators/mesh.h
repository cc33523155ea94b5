// A mesh of tetrahedra from an HDF5 file, and the numbering of the nodes of linear or quadratic elements on
// it. Every rank holds the whole mesh; node numbers are 32-bit.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shardmat {

struct TetMesh {
  std::vector<std::array<double, 3>> points;
  std::vector<std::array<std::int32_t, 4>> tetrahedra;  ///< positively oriented
};

/// The datasets of a mesh.
std::vector<std::string> tet_mesh_objects();

/// Reads /points (floating point, [n, 3]) and /tetrahedra (integer, [m, 4], 0-based), and corrects the orientation of
/// inverted tetrahedra. Throws Error(input) with the file and the wrong dataset, tetrahedron or point.
TetMesh read_tet_mesh(const std::string& path);

/// The nodes of elements of degree 1 or 2: first the vertices of the mesh, then for degree 2 the midpoints of the edges,
/// sorted by (smaller, larger) vertex.
class TetNodes {
 public:
  /// Throws Error(input) naming `source` if there are 2^31 nodes or more.
  TetNodes(const TetMesh& mesh, int degree, const std::string& source);

  std::int64_t count() const { return static_cast<std::int64_t>(position_.size()); }
  /// 4 or 10 nodes: vertices, then middles of the edges 01, 02, 03, 12, 13, 23.
  std::span<const std::int32_t> of_element(std::int64_t element) const {
    return std::span(element_nodes_).subspan(static_cast<std::size_t>(element) * per_element_, per_element_);
  }
  /// The elements with this node, ascending.
  std::span<const std::int32_t> elements_of(std::int64_t node) const {
    const auto i = static_cast<std::size_t>(node);
    return std::span(elements_).subspan(static_cast<std::size_t>(first_element_[i]),
                                        static_cast<std::size_t>(first_element_[i + 1] - first_element_[i]));
  }
  /// The middles of edges of degree 2, ascending: the node, and the two ends of its edge.
  std::vector<std::array<std::int32_t, 3>> mid_edges() const;
  /// The number of the connected body that each node belongs to, from 0. Elements of a body share nodes.
  std::vector<std::int32_t> bodies() const;
  const std::array<double, 3>& position(std::int64_t node) const { return position_[static_cast<std::size_t>(node)]; }

 private:
  void number_edges(const TetMesh& mesh, const std::string& source);
  void invert();

  std::size_t per_element_;
  std::size_t vertices_;
  std::vector<std::array<double, 3>> position_;
  std::vector<std::int32_t> element_nodes_;
  std::vector<std::int64_t> first_element_;
  std::vector<std::int32_t> elements_;
};

}  // namespace shardmat
