#include "partition/nodes/mesh_cells.h"

#include <algorithm>
#include <iterator>

namespace shardmat {
namespace {

/// `ends`: of the edges whose middles follow the corners in the quadratic cell.
struct VtkCell {
  int dimension;
  std::int64_t corners;
  std::uint8_t linear, quadratic;
  std::string_view ends;
};
constexpr VtkCell kVtkCells[] = {
    {1, 2, 3, 21, "01"},
    {2, 3, 5, 22, "011220"},
    {2, 4, 9, 23, "01122330"},
    {3, 4, 10, 24, "011220031323"},
    {3, 5, 14, 27, "0112233004142434"},
    {3, 6, 13, 26, "011220344553031425"},
    {3, 8, 12, 25, "011223304556677404152637"},
};

}  // namespace

void MeshCells::end(std::uint8_t type) {
  ends.push_back(std::ssize(nodes));
  types.push_back(type);
}

void add_cell(const MeshElement& element, std::span<const std::int64_t> nodes, MeshCells& cells) {
  const auto* const cell = std::find_if(std::begin(kVtkCells), std::end(kVtkCells), [&](const VtkCell& one) {
    return one.corners == element.corners && (element.corners == 3 || one.dimension == element.dimension);
  });
  if (cell == std::end(kVtkCells)) return;
  cells.nodes.insert(cells.nodes.end(), nodes.begin(), nodes.begin() + element.corners);
  if (element.ends.empty()) return cells.end(cell->linear);
  for (std::size_t i = 0; i < cell->ends.size(); i += 2)
    for (std::size_t k = 0; k < element.ends.size(); k += 2) {
      const bool same = element.ends[k] == cell->ends[i] && element.ends[k + 1] == cell->ends[i + 1];
      const bool turned = element.ends[k] == cell->ends[i + 1] && element.ends[k + 1] == cell->ends[i];
      if (same || turned) cells.nodes.push_back(nodes[static_cast<std::size_t>(element.corners) + k / 2]);
    }
  cells.end(cell->quadratic);
}

int dimension_of(std::uint8_t type) {
  for (const VtkCell& cell : kVtkCells)
    if (type == cell.linear || type == cell.quadratic) return cell.dimension;
  return 0;
}

}  // namespace shardmat
