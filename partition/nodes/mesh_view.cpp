#include "partition/nodes/mesh_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/nodes/mesh_file.h"

namespace shardmat {
namespace {

/// Degrees of freedom 1 to 6 are displacements and rotations; any other one is the only one of its node.
std::int64_t component_of(const NodeUnknown& unknown) { return unknown.dof >= 1 && unknown.dof <= 6 ? unknown.dof - 1 : 0; }

MeshView view_file(const std::string& file, const RowSource& source, std::int64_t node_block_size) {
  MeshNodes mesh = read_mesh(file, true);
  MeshView view;
  const auto nodes = std::ssize(mesh.nodes);
  require_host_memory(48 * nodes + 8 * std::ssize(mesh.cells.nodes), file.c_str());
  for (const MeshNodes::Node& node : mesh.nodes) view.points.insert(view.points.end(), node.at.begin(), node.at.end());
  if (const auto unknowns = unknowns_in_mesh(source, file)) {
    for (const NodeUnknown& one : *unknowns) view.components = std::max(view.components, component_of(one) + 1);
    view.rows.assign(static_cast<std::size_t>(nodes * view.components), -1);
    for (std::size_t row = 0; row < unknowns->size(); ++row) {
      const NodeUnknown& one = (*unknowns)[row];
      const std::int64_t place = place_of(mesh, one.node);
      if (place < 0 && one.node < 0) continue;  // Abaqus' own
      if (place < 0)
        throw Error(ErrorKind::input,
                    fmt::format("{}: it has no node {}, which the matrix has; take both files from one run", file, one.node),
                    "coordinates");
      view.rows[static_cast<std::size_t>(place * view.components + component_of(one))] = static_cast<std::int64_t>(row);
    }
  } else {
    require_all_nodes(mesh, source, node_block_size, file);
    view.components = node_block_size;
    view.rows.resize(static_cast<std::size_t>(source.rows()));
    std::iota(view.rows.begin(), view.rows.end(), std::int64_t{0});
  }
  for (std::int64_t& node : mesh.cells.nodes) {
    const std::int64_t place = place_of(mesh, node);
    if (place < 0)
      throw Error(ErrorKind::input, fmt::format("{}: an element has node {}, which is not among the nodes", file, node),
                  "coordinates");
    node = place;
  }
  view.cells = std::move(mesh.cells);
  return view;
}

MeshView view_source(const NodeFiles& files, const RowSource& source, std::int64_t node_block_size) {
  const auto facts = open_node_files({files.coordinates, {}, {}}, source, node_block_size);
  const std::int64_t nodes = facts->placed_nodes();
  if (nodes == 0)
    throw Error(ErrorKind::input,
                fmt::format("{}: where its nodes lie is not known, so there is no picture of its solution. Give the mesh or "
                            "the coordinates of the nodes",
                            source.name()),
                "coordinates");
  MeshView view;
  view.points = facts->coordinates(0, nodes);
  view.components = source.rows() / nodes;
  view.rows.resize(static_cast<std::size_t>(source.rows()));
  std::iota(view.rows.begin(), view.rows.end(), std::int64_t{0});
  if (const auto* const cells = dynamic_cast<const CellSource*>(&source)) view.cells = cells->cells();
  return view;
}

}  // namespace

MeshView view_mesh(const NodeFiles& files, const RowSource& source, std::int64_t node_block_size) {
  MeshView view = is_mesh_file(files.coordinates) ? view_file(files.coordinates, source, node_block_size)
                                                  : view_source(files, source, node_block_size);
  constexpr std::uint8_t kVertex = 1;
  if (!view.cells.types.empty()) return view;
  for (std::int64_t point = 0; point < std::ssize(view.points) / 3; ++point) {
    view.cells.nodes.push_back(point);
    view.cells.end(kVertex);
  }
  return view;
}

}  // namespace shardmat
