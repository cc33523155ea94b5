#include "partition/generators/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kLongestEdge = 1 << 20;
constexpr double kMostNodes = 0x1p50;
constexpr std::int64_t kNodesPerTask = 1024;
constexpr double kThinnest = 1e-6;
constexpr double kStiffest = 1e12;
constexpr std::uint64_t kInclusionStream = 13;

void refuse_too_many(const Arguments& arguments, double nodes) {
  if (nodes > kMostNodes) arguments.refuse(fmt::format("{:.3g} nodes are too many; there may be 2^50", nodes));
}

/// A box of the lengths in the parameter size, with n nodes along its shortest edge.
Grid sized_grid_from(const Arguments& arguments) {
  for (const char* key : {"nx", "ny", "nz", "stretch"})
    if (arguments.given(key))
      arguments.refuse(
          fmt::format("size and {} contradict each other: size and n decide nodes and elements; leave one out", key));
  const std::array<double, 3> length = arguments.lengths("size", kThinnest, 1 / kThinnest);
  const double shortest = *std::min_element(length.begin(), length.end());
  const auto cells = static_cast<double>(arguments.integer("n", 2, kLongestEdge) - 1);
  Grid grid;
  double nodes = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    const double along = std::round(length[d] / shortest * cells);
    if (along >= static_cast<double>(kLongestEdge))
      arguments.refuse(fmt::format("size={} with {} nodes along the shortest edge needs {:.3g} along {}; there may be {}",
                                   arguments.text("size"), cells + 1, along + 1, "xyz"[d], kLongestEdge));
    grid.size[d] = static_cast<std::int64_t>(along) + 1;
    grid.edge[d] = length[d] / along;
    nodes *= along + 1;
  }
  refuse_too_many(arguments, nodes);
  return grid;
}

}  // namespace

std::int64_t Grid::neighbours(const GridPoint& p) const {
  if (is_clamped(p)) return 1;
  std::int64_t count = 1;
  for (std::size_t d = 0; d < 3; ++d) count *= last(p, d) - first(p, d) + 1;
  return count;
}

Grid free_grid_from(const Arguments& arguments, std::int64_t least) {
  Grid grid;
  static constexpr const char* kKeys[3] = {"nx", "ny", "nz"};
  double nodes = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    grid.size[d] = arguments.integer(arguments.given(kKeys[d]) ? kKeys[d] : "n", least, kLongestEdge);
    nodes *= static_cast<double>(grid.size[d]);
  }
  refuse_too_many(arguments, nodes);
  return grid;
}

Grid grid_from(const Arguments& arguments, std::int64_t least) {
  Grid grid = arguments.given("size") ? sized_grid_from(arguments) : free_grid_from(arguments, least);
  if (!arguments.given("size")) grid.edge = arguments.lengths("stretch", kThinnest, 1 / kThinnest);
  std::array<double, 3> length{};
  for (std::size_t d = 0; d < 3; ++d) length[d] = static_cast<double>(grid.size[d] - 1) * grid.edge[d];
  grid.axis = static_cast<int>(std::max_element(length.begin(), length.end()) - length.begin());
  const double fraction = arguments.real("clamp", 0, 1);
  const double cells = static_cast<double>(grid.size[static_cast<std::size_t>(grid.axis)] - 1);
  if (fraction > 0) grid.clamped = static_cast<std::int64_t>(std::floor(fraction * cells * (1 + 1e-12))) + 1;
  return grid;
}

Inclusions::Inclusions(const Arguments& arguments, const Grid& grid)
    : factor_(arguments.real("inclusions", 1 / kStiffest, kStiffest)), random_(arguments.seed(), kInclusionStream) {
  for (std::size_t d = 0; d < 3; ++d) blocks_[d] = (grid.size[d] + kWidth - 1) / kWidth;
}

void GridSource::count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const {
  for_node_pieces(begin, end, unknowns_, [&](std::int64_t first_node, std::int64_t last_node) {
    GridPoint p = grid_.point(first_node);
    for (std::int64_t node = first_node; node < last_node; ++node, grid_.advance(p)) {
      const std::int64_t length = grid_.is_clamped(p) ? 1 : grid_.neighbours(p) * unknowns_;
      const std::int64_t stop = std::min(end, (node + 1) * unknowns_);
      for (std::int64_t row = std::max(begin, node * unknowns_); row < stop; ++row) lengths[row - begin] = length;
    }
  });
}

HostVector<double> GridSource::coordinates(std::int64_t begin, std::int64_t end) const {
  HostVector<double> all(static_cast<std::size_t>(3 * (end - begin)));
  parallel_ranges(end - begin, 1 << 14, [&](std::int64_t first, std::int64_t last) {
    GridPoint p = grid_.point(begin + first);
    double* to = all.data() + 3 * first;
    for (std::int64_t node = first; node < last; ++node, grid_.advance(p))
      for (std::size_t d = 0; d < 3; ++d) *to++ = coordinate(p, d);
  });
  return all;
}

MeshCells GridSource::cells() const {
  std::vector<std::size_t> along;  // directions with elements
  for (std::size_t d = 0; d < 3; ++d)
    if (grid_.size[d] > 1) along.push_back(d);
  // Corners of a box of so many directions in VTK's order: bit k is a step along direction k.
  constexpr int kCorners[] = {0, 1, 3, 2, 4, 5, 7, 6};
  constexpr std::uint8_t kTypes[] = {0, 3, 9, 12};
  MeshCells cells;
  if (along.empty()) return cells;
  GridPoint p{};
  for (std::int64_t node = 0; node < grid_.nodes(); ++node, grid_.advance(p)) {
    const auto is_last = [&](std::size_t d) { return p[d] + 1 == grid_.size[d]; };
    if (std::any_of(along.begin(), along.end(), is_last)) continue;
    for (int corner = 0; corner < 1 << along.size(); ++corner) {
      GridPoint q = p;
      for (std::size_t k = 0; k < along.size(); ++k) q[along[k]] += kCorners[corner] >> k & 1;
      cells.nodes.push_back(grid_.node(q));
    }
    cells.end(kTypes[along.size()]);
  }
  return cells;
}

void for_node_pieces(std::int64_t begin, std::int64_t end, int unknowns,
                     const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (begin == end) return;
  const std::int64_t first = begin / unknowns, last = (end + unknowns - 1) / unknowns;
  parallel_tasks((last - first + kNodesPerTask - 1) / kNodesPerTask, [&](std::int64_t task) {
    const std::int64_t from = first + task * kNodesPerTask;
    body(from, std::min(last, from + kNodesPerTask));
  });
}

}  // namespace shardmat
