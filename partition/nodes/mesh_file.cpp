#include "partition/nodes/mesh_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/files/compression/compression.h"
#include "partition/readers/node_unknowns.h"

namespace shardmat {
namespace {

const MeshFormat kMeshFormats[] = {
    {"abaqus and calculix input", ".inp", read_abaqus_mesh},
    {"calculix results", ".frd", read_frd_mesh},
    {"gmsh", ".msh", read_gmsh_mesh},
};

const MeshFormat* mesh_format_of(const std::string& path) {
  const std::string suffix = uncompressed_name(path).extension().string();
  for (const MeshFormat& format : kMeshFormats)
    if (format.suffix == suffix) return &format;
  return nullptr;
}

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", file, what), "coordinates");
}

/// The surface of a body and its edges are no cells of their own.
void keep_highest_dimension(MeshCells& cells) {
  int highest = 0;
  for (const std::uint8_t type : cells.types) highest = std::max(highest, dimension_of(type));
  MeshCells kept;
  for (std::size_t i = 0; i < cells.types.size(); ++i) {
    if (dimension_of(cells.types[i]) != highest) continue;
    const auto first = cells.nodes.begin() + (i == 0 ? 0 : cells.ends[i - 1]);
    kept.nodes.insert(kept.nodes.end(), first, cells.nodes.begin() + cells.ends[i]);
    kept.end(cells.types[i]);
  }
  cells = std::move(kept);
}

const MeshNodes::Node& known_node(const MeshNodes& mesh, const std::string& file, std::int64_t number) {
  if (const std::int64_t place = place_of(mesh, number); place >= 0) return mesh.nodes[static_cast<std::size_t>(place)];
  refuse(file, fmt::format("it has no node {}, which the matrix has; take both files from one run", number));
}

/// The numbers of the nodes of `size` rows each, if the rows are whole nodes, alike; else none.
std::vector<std::int64_t> whole_nodes(const UnknownList& unknowns, std::int64_t size) {
  const auto at = [&](std::int64_t row) -> const NodeUnknown& { return unknowns[static_cast<std::size_t>(row)]; };
  std::vector<std::int64_t> numbers;
  for (std::int64_t row = 0; row < std::ssize(unknowns); ++row) {
    const std::int64_t first = row / size * size;
    if (at(row).node != at(first).node || at(row).dof != at(row % size).dof) return {};
    if (row == first) numbers.push_back(at(row).node);
  }
  return numbers;
}

/// A node that stands for several, as those of CalculiX's shells do, lies in no place that is known.
void require_single(const UnknownList& unknowns, const std::string& file) {
  UnknownList sorted = unknowns;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    refuse(file, fmt::format("the matrix has degree of freedom {} of node {} several times, as CalculiX makes solids of "
                             "shells and beams: where these nodes lie is not known. Leave the file out",
                             twice->dof, twice->node));
}

/// The six rigid-body modes in each row, about the middle of the mesh.
PlacedMesh modes_by_rows(const MeshNodes& mesh, const UnknownList& unknowns, const std::string& file) {
  std::array<double, 3> centre{};
  for (const MeshNodes::Node& node : mesh.nodes)
    for (std::size_t k = 0; k < 3; ++k) centre[k] += node.at[k] / static_cast<double>(mesh.nodes.size());
  require_host_memory(48 * std::ssize(unknowns), "rigid-body modes");
  PlacedMesh placed;
  placed.near_null_count = 6;
  placed.near_null_vectors.assign(6 * unknowns.size(), 0.0);
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    const NodeUnknown& one = unknowns[i];
    if (one.node < 0) continue;  // Abaqus' own, which moves with no body
    if (one.dof < 1 || one.dof > 6)
      refuse(file, fmt::format("some nodes of the matrix have unknowns that others lack, and node {} has degree of freedom "
                               "{}, which is no motion: what multigrid needs of such nodes is not known. Leave the file out",
                               one.node, one.dof));
    const auto& at = known_node(mesh, file, one.node).at;
    const auto axis = static_cast<std::size_t>((one.dof - 1) % 3), second = (axis + 1) % 3, third = (axis + 2) % 3;
    double* const row = &placed.near_null_vectors[6 * i];
    if (one.dof > 3) {
      row[3 + axis] = 1;
      continue;
    }
    row[axis] = 1;
    row[3 + second] = at[third] - centre[third];  // rotation × place
    row[3 + third] = -(at[second] - centre[second]);
  }
  return placed;
}

std::shared_ptr<const UnknownList> unknowns_of(const RowSource& source) {
  if (auto known = source.unknowns()) return known;
  const std::filesystem::path list = unknowns_file(source.name());
  std::error_code none;
  if (!std::filesystem::is_regular_file(list, none)) return nullptr;
  auto read = std::make_shared<const UnknownList>(read_unknowns(list, {}));
  if (std::ssize(*read) != source.rows())
    refuse(list.string(), fmt::format("it names {} unknowns, but the matrix has {} rows", read->size(), source.rows()));
  return read;
}

}  // namespace

MeshNodes read_mesh(const std::string& file, bool wants_cells) {
  MeshNodes mesh;
  mesh.wants_cells = wants_cells;
  mesh_format_of(file)->read(file, mesh);
  if (mesh.nodes.empty()) refuse(file, "it has no nodes");
  std::stable_sort(mesh.nodes.begin(), mesh.nodes.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  const auto same = [&](const MeshNodes::Node& a, const MeshNodes::Node& b) {
    if (a.number == b.number && a.at != b.at)
      refuse(file, fmt::format("node {} comes twice, at ({}, {}, {}) and ({}, {}, {})", a.number, a.at[0], a.at[1], a.at[2],
                               b.at[0], b.at[1], b.at[2]));
    return a.number == b.number;
  };
  mesh.nodes.erase(std::unique(mesh.nodes.begin(), mesh.nodes.end(), same), mesh.nodes.end());
  std::sort(mesh.mid_edges.begin(), mesh.mid_edges.end());
  mesh.mid_edges.erase(std::unique(mesh.mid_edges.begin(), mesh.mid_edges.end()), mesh.mid_edges.end());
  if (wants_cells) keep_highest_dimension(mesh.cells);
  return mesh;
}

std::int64_t place_of(const MeshNodes& mesh, std::int64_t number) {
  const auto at = std::lower_bound(mesh.nodes.begin(), mesh.nodes.end(), number,
                                   [](const MeshNodes::Node& node, std::int64_t n) { return node.number < n; });
  return at == mesh.nodes.end() || at->number != number ? -1 : at - mesh.nodes.begin();
}

void require_all_nodes(const MeshNodes& mesh, const RowSource& source, std::int64_t size, const std::string& file) {
  if (std::ssize(mesh.nodes) != source.rows() / size)
    refuse(file, fmt::format("it has {} nodes, but the matrix has {} of {} unknown{}, and does not say which: put a list of "
                             "its rows beside it, {}, with a line node.dof for each row",
                             mesh.nodes.size(), source.rows() / size, size, size == 1 ? "" : "s",
                             unknowns_file(source.name()).string()));
}

std::shared_ptr<const UnknownList> unknowns_in_mesh(const RowSource& source, const std::string& mesh) {
  auto unknowns = unknowns_of(source);
  if (unknowns) require_single(*unknowns, mesh);
  return unknowns;
}

bool is_mesh_file(const std::string& path) { return mesh_format_of(path) != nullptr; }

void add_element(const MeshElement& element, const std::vector<std::int64_t>& nodes, MeshNodes& mesh) {
  for (std::size_t k = 0; 2 * k < element.ends.size(); ++k) {
    const auto end = [&](std::size_t digit) { return nodes[static_cast<std::size_t>(element.ends[2 * k + digit] - '0')]; };
    mesh.mid_edges.push_back(
        {nodes[static_cast<std::size_t>(element.corners) + k], std::min(end(0), end(1)), std::max(end(0), end(1))});
  }
  if (mesh.wants_cells) add_cell(element, nodes, mesh.cells);
}

PlacedMesh place_mesh(const std::string& file, const RowSource& source, std::int64_t node_block_size) {
  const MeshNodes mesh = read_mesh(file, false);
  const auto unknowns = unknowns_in_mesh(source, file);
  std::vector<std::int64_t> numbers;
  if (unknowns) {
    numbers = whole_nodes(*unknowns, node_block_size);
    // Rows of one unknown each, which are several of a node.
    const bool of_several = node_block_size == 1 && std::any_of(unknowns->begin(), unknowns->end(), [&](const auto& one) {
                              return one.dof != unknowns->front().dof;
                            });
    if (numbers.empty() || of_several) return modes_by_rows(mesh, *unknowns, file);
  } else {
    require_all_nodes(mesh, source, node_block_size, file);
    for (const MeshNodes::Node& node : mesh.nodes) numbers.push_back(node.number);
  }
  PlacedMesh placed;
  require_host_memory(40 * std::ssize(numbers), file.c_str());
  std::vector<std::pair<std::int64_t, std::int64_t>> places;  // of each number
  for (const std::int64_t number : numbers) {
    const auto& at = known_node(mesh, file, number).at;
    placed.coordinates.insert(placed.coordinates.end(), at.begin(), at.end());
    places.emplace_back(number, std::ssize(places));
  }
  std::sort(places.begin(), places.end());
  const auto place_of_node = [&](std::int64_t number) {
    const auto at = std::lower_bound(places.begin(), places.end(), std::pair(number, std::int64_t{0}));
    return at == places.end() || at->first != number ? std::int64_t{-1} : at->second;
  };
  for (const MidEdge& edge : mesh.mid_edges) {
    MidEdge by_place;
    std::transform(edge.begin(), edge.end(), by_place.begin(), place_of_node);
    if (*std::min_element(by_place.begin(), by_place.end()) < 0) continue;  // held nodes are no rows
    if (by_place[1] > by_place[2]) std::swap(by_place[1], by_place[2]);
    placed.mid_edges.push_back(by_place);
  }
  return placed;
}

}  // namespace shardmat
