#include "partition/generators/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "partition/hdf5/file.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMostNodes = std::numeric_limits<std::int32_t>::max();
/// Volume · 6 over the cube of the longest edge below which a tetrahedron counts as flat.
constexpr double kFlat = 1e-13;
constexpr std::size_t kEdges[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};

[[noreturn]] void reject(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("mesh {}: {}", path, what));
}

constexpr const char *kPoints = "/points", *kTetrahedra = "/tetrahedra";

/// Reads the whole dataset `name` of the shape [n, Width] as T; `floating` is what a mesh has there.
template <class T, std::size_t Width>
std::vector<std::array<T, Width>> read_table(const Hdf5File& file, const char* name, bool floating) {
  if (!file.has(name))
    reject(file.path(),
           fmt::format("there is no dataset {}; a mesh has /points and /tetrahedra (tools/plots/convert_mesh.py makes "
                       "such a file from Gmsh's and other formats)",
                       name));
  const Hdf5Dataset dataset = file.dataset(name);
  const Hdf5Type type = dataset.type();
  const bool real = type == Hdf5Type::f32 || type == Hdf5Type::f64 || type == Hdf5Type::other_float;
  if (type == Hdf5Type::other || real != floating)
    reject(file.path(), fmt::format("{} must hold {} numbers", name, floating ? "floating-point" : "whole"));
  const std::vector<std::int64_t>& shape = dataset.shape();
  if (shape.size() != 2 || shape[1] != static_cast<std::int64_t>(Width))
    reject(file.path(), fmt::format("{} must have the shape [count, {}]", name, Width));
  if (shape[0] == 0) reject(file.path(), fmt::format("{} is empty", name));
  if (shape[0] > kMostNodes)
    reject(file.path(), fmt::format("{} has {} rows; a mesh may have up to {}", name, shape[0], kMostNodes));
  require_host_memory(shape[0] * static_cast<std::int64_t>(sizeof(T) * Width), file.path().c_str());
  std::vector<std::array<T, Width>> table(static_cast<std::size_t>(shape[0]));
  dataset.read(0, shape[0], table.data()->data());
  return table;
}

/// Six times the volume, divided by the cube of the longest coordinate difference of an edge; 0 for repeated
/// vertices.
double relative_volume(const TetMesh& mesh, const std::array<std::int32_t, 4>& tet) {
  double edge[3][3], longest = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (const std::int32_t v : tet) {
      const double x = mesh.points[static_cast<std::size_t>(v)][d];
      least = std::min(least, x);
      most = std::max(most, x);
    }
    longest = std::max(longest, most - least);
    for (std::size_t v = 0; v < 3; ++v)
      edge[v][d] = mesh.points[static_cast<std::size_t>(tet[v + 1])][d] - mesh.points[static_cast<std::size_t>(tet[0])][d];
  }
  if (longest == 0) return 0;
  for (auto& e : edge)
    for (double& x : e) x /= longest;
  const auto& [a, b, c] = edge;
  return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
}

void check_points(const TetMesh& mesh, const std::string& path) {
  for (std::size_t i = 0; i < mesh.points.size(); ++i)
    for (const double x : mesh.points[i])
      if (!std::isfinite(x)) reject(path, fmt::format("point {} has a coordinate that is not finite", i));
}

/// Converts the vertices to 32 bits, checks them, and orients the tetrahedra.
void take_tetrahedra(TetMesh& mesh, const std::vector<std::array<std::int64_t, 4>>& tetrahedra, const std::string& path) {
  const auto points = static_cast<std::int64_t>(mesh.points.size());
  std::vector<bool> used(mesh.points.size());
  mesh.tetrahedra.resize(tetrahedra.size());
  for (std::size_t t = 0; t < tetrahedra.size(); ++t) {
    std::array<std::int32_t, 4>& tet = mesh.tetrahedra[t];
    for (std::size_t v = 0; v < 4; ++v) {
      const std::int64_t vertex = tetrahedra[t][v];
      if (vertex < 0 || vertex >= points)
        reject(path,
               fmt::format("tetrahedron {} has the vertex {}, but the points are numbered 0 to {}", t, vertex, points - 1));
      tet[v] = static_cast<std::int32_t>(vertex);
      used[static_cast<std::size_t>(vertex)] = true;
    }
    const double volume = relative_volume(mesh, tet);
    if (!(std::abs(volume) > kFlat))
      reject(path, fmt::format("tetrahedron {} (vertices {}, {}, {}, {}) has no volume; repair the mesh", t, tet[0], tet[1],
                               tet[2], tet[3]));
    if (volume < 0) std::swap(tet[2], tet[3]);
  }
  const auto unused = std::find(used.begin(), used.end(), false);
  if (unused != used.end())
    reject(path,
           fmt::format("point {} belongs to no tetrahedron, which would make an empty row; tools/plots/convert_mesh.py "
                       "drops such points",
                       unused - used.begin()));
}

}  // namespace

std::vector<std::string> tet_mesh_objects() { return {kPoints, kTetrahedra}; }

TetMesh read_tet_mesh(const std::string& path) {
  Hdf5File file;
  try {
    file = Hdf5File::open(path, tet_mesh_objects());
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::input) throw;
    throw Error(ErrorKind::input,
                fmt::format("mesh {}; tools/plots/convert_mesh.py makes meshes from Gmsh's and other formats", e.what()));
  }
  TetMesh mesh;
  mesh.points = read_table<double, 3>(file, kPoints, true);
  check_points(mesh, path);
  take_tetrahedra(mesh, read_table<std::int64_t, 4>(file, kTetrahedra, false), path);
  return mesh;
}

TetNodes::TetNodes(const TetMesh& mesh, int degree, const std::string& source)
    : per_element_(degree == 1 ? 4 : 10), vertices_(mesh.points.size()), position_(mesh.points) {
  element_nodes_.resize(mesh.tetrahedra.size() * per_element_);
  for (std::size_t t = 0; t < mesh.tetrahedra.size(); ++t)
    std::copy(mesh.tetrahedra[t].begin(), mesh.tetrahedra[t].end(), &element_nodes_[t * per_element_]);
  if (degree == 2) number_edges(mesh, source);
  invert();
}

void TetNodes::number_edges(const TetMesh& mesh, const std::string& source) {
  // Larger vertices of the edges, bucketed by the smaller one; each bucket then sorted and made unique.
  const std::size_t vertices = mesh.points.size();
  std::vector<std::int64_t> start(vertices + 1);
  const auto ends = [&](const std::array<std::int32_t, 4>& tet, std::size_t e) {
    return std::minmax(tet[kEdges[e][0]], tet[kEdges[e][1]]);
  };
  for (const auto& tet : mesh.tetrahedra)
    for (std::size_t e = 0; e < 6; ++e)
      ++start[static_cast<std::size_t>(std::min(tet[kEdges[e][0]], tet[kEdges[e][1]])) + 1];
  for (std::size_t v = 0; v < vertices; ++v) start[v + 1] += start[v];
  std::vector<std::int32_t> larger(static_cast<std::size_t>(start[vertices]));
  std::vector<std::int64_t> place(start.begin(), start.end() - 1);
  for (const auto& tet : mesh.tetrahedra)
    for (std::size_t e = 0; e < 6; ++e) {
      const std::pair<std::int32_t, std::int32_t> edge = ends(tet, e);
      larger[static_cast<std::size_t>(place[static_cast<std::size_t>(edge.first)]++)] = edge.second;
    }
  std::vector<std::int64_t> number(vertices + 1);  // number[v + 1]: unique edges from v, then their running sum
  parallel_ranges(static_cast<std::int64_t>(vertices), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (auto v = static_cast<std::size_t>(begin); v < static_cast<std::size_t>(end); ++v) {
      std::sort(larger.begin() + start[v], larger.begin() + start[v + 1]);
      const auto stop = std::unique(larger.begin() + start[v], larger.begin() + start[v + 1]);
      number[v + 1] = stop - (larger.begin() + start[v]);
    }
  });
  for (std::size_t v = 0; v < vertices; ++v) number[v + 1] += number[v];
  const std::int64_t total = static_cast<std::int64_t>(vertices) + number[vertices];
  if (total > kMostNodes) reject(source, fmt::format("degree 2 has {} nodes; there may be up to {}", total, kMostNodes));
  position_.resize(static_cast<std::size_t>(total));
  for (std::size_t t = 0; t < mesh.tetrahedra.size(); ++t)
    for (std::size_t e = 0; e < 6; ++e) {
      const std::pair<std::int32_t, std::int32_t> edge = ends(mesh.tetrahedra[t], e);
      const auto v = static_cast<std::size_t>(edge.first), w = static_cast<std::size_t>(edge.second);
      const auto bucket = larger.begin() + start[v];
      const auto rank = std::lower_bound(bucket, bucket + (number[v + 1] - number[v]), edge.second) - bucket;
      const std::size_t node = vertices + static_cast<std::size_t>(number[v] + rank);
      element_nodes_[t * per_element_ + 4 + e] = static_cast<std::int32_t>(node);
      for (std::size_t d = 0; d < 3; ++d) position_[node][d] = (mesh.points[v][d] + mesh.points[w][d]) / 2;
    }
}

void TetNodes::invert() {
  first_element_.assign(position_.size() + 1, 0);
  for (const std::int32_t node : element_nodes_) ++first_element_[static_cast<std::size_t>(node) + 1];
  for (std::size_t i = 1; i < first_element_.size(); ++i) first_element_[i] += first_element_[i - 1];
  elements_.resize(element_nodes_.size());
  std::vector<std::int64_t> place(first_element_.begin(), first_element_.end() - 1);
  for (std::size_t k = 0; k < element_nodes_.size(); ++k)
    elements_[static_cast<std::size_t>(place[static_cast<std::size_t>(element_nodes_[k])]++)] =
        static_cast<std::int32_t>(k / per_element_);
}

std::vector<std::array<std::int32_t, 3>> TetNodes::mid_edges() const {
  std::vector<std::array<std::int32_t, 3>> middles(position_.size() - vertices_);
  for (std::size_t first = 0; first < element_nodes_.size(); first += per_element_)
    for (std::size_t e = 0; e < per_element_ - 4; ++e) {
      const std::int32_t node = element_nodes_[first + 4 + e];
      middles[static_cast<std::size_t>(node) - vertices_] = {node, element_nodes_[first + kEdges[e][0]],
                                                             element_nodes_[first + kEdges[e][1]]};
    }
  return middles;
}

std::vector<std::int32_t> TetNodes::bodies() const {
  std::vector<std::int32_t> lower(position_.size());  // a node of the same body, or the node itself if none is lower
  std::iota(lower.begin(), lower.end(), 0);
  const auto least = [&](std::int32_t node) {
    for (auto i = static_cast<std::size_t>(node);; i = static_cast<std::size_t>(lower[i])) {
      lower[i] = lower[static_cast<std::size_t>(lower[i])];
      if (lower[i] == static_cast<std::int32_t>(i)) return lower[i];
    }
  };
  for (std::size_t k = 0; k < element_nodes_.size(); ++k) {
    const std::int32_t a = least(element_nodes_[k]), b = least(element_nodes_[k / per_element_ * per_element_]);
    lower[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
  }
  std::int32_t count = 0;
  for (std::size_t i = 0; i < lower.size(); ++i)  // lower nodes have their body's number already
    lower[i] = lower[i] == static_cast<std::int32_t>(i) ? count++ : lower[static_cast<std::size_t>(lower[i])];
  return lower;
}

}  // namespace shardmat
