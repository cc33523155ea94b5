// Cells between the nodes of a mesh, as VTK numbers their types and orders their nodes.
//
// Threads: values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/host_vector.h"

namespace shardmat {

struct MeshCells {
  HostVector<std::int64_t> nodes;  ///< of all cells, one after another
  HostVector<std::int64_t> ends;   ///< of each cell among `nodes`
  HostVector<std::uint8_t> types;  ///< of VTK, as 12 for a hexahedron

  void end(std::uint8_t type);  ///< the nodes that were added since the last call are those of a cell
};

/// A type of elements: `corners` nodes, then middles of the edges between the corners that `ends` names, two digits each,
/// then nodes elsewhere. Corners are in VTK's order.
struct MeshElement {
  std::size_t nodes;
  std::int64_t corners;
  std::string_view ends;
  int dimension = 3;  ///< tells a tetrahedron from a quadrangle
};

/// Adds an element as a cell; nodes elsewhere are left out. Nothing for an element that VTK has no cell for.
void add_cell(const MeshElement& element, std::span<const std::int64_t> nodes, MeshCells& cells);
/// 1 to 3.
int dimension_of(std::uint8_t type);

/// What knows the cells between the nodes that it places (NodeFacts::coordinates()).
class CellSource {
 public:
  virtual ~CellSource() = default;
  virtual MeshCells cells() const = 0;
};

}  // namespace shardmat
