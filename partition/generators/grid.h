// A regular grid of nodes, numbered with x fastest, and the pattern of matrices that couple each node with its neighbours.
// Inclusions are blocks of other stiffness in it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "partition/generators/arguments.h"
#include "partition/generators/counter_random.h"
#include "partition/generators/generated_source.h"
#include "partition/nodes/mesh_cells.h"

namespace shardmat {

using GridPoint = std::array<std::int64_t, 3>;

struct Grid {
  GridPoint size{};                     ///< nodes in each direction
  std::array<double, 3> edge{1, 1, 1};  ///< distance of neighbours in each direction
  int axis = 0;                         ///< the longest axis; the first if several are equal
  std::int64_t clamped = 0;             ///< planes of clamped nodes at the beginning of this axis

  std::int64_t nodes() const { return size[0] * size[1] * size[2]; }
  std::int64_t node(const GridPoint& p) const { return (p[2] * size[1] + p[1]) * size[0] + p[0]; }
  GridPoint point(std::int64_t node) const { return {node % size[0], node / size[0] % size[1], node / size[0] / size[1]}; }
  /// The node after p.
  void advance(GridPoint& p) const {
    for (std::size_t d = 0; d < 2; ++d) {
      if (++p[d] < size[d]) return;
      p[d] = 0;
    }
    ++p[2];
  }
  bool is_clamped(const GridPoint& p) const { return p[static_cast<std::size_t>(axis)] < clamped; }
  /// First and last neighbour of p that is not clamped, in direction d; p itself is not clamped.
  std::int64_t first(const GridPoint& p, std::size_t d) const {
    const std::int64_t least = static_cast<int>(d) == axis ? clamped : 0;
    return p[d] - 1 < least ? least : p[d] - 1;
  }
  std::int64_t last(const GridPoint& p, std::size_t d) const { return p[d] + 1 < size[d] ? p[d] + 1 : p[d]; }
  bool has(const GridPoint& p) const {
    return p[0] >= 0 && p[0] < size[0] && p[1] >= 0 && p[1] < size[1] && p[2] >= 0 && p[2] < size[2];
  }
  /// Number of nodes coupled with p, including p; 1 if p is clamped.
  std::int64_t neighbours(const GridPoint& p) const;
};

/// Makes a grid from the parameters n, nx, ny, nz, at least `least` each. No node is clamped.
Grid free_grid_from(const Arguments& arguments, std::int64_t least);
/// The parameter size of the generators that call grid_from().
inline constexpr GeneratorParameter kSizeParameter{
    "size", "none",
    "lengths AxBxC of the box along x, y and z, in place of nx, ny, nz and stretch: n nodes along the shortest, elements as "
    "long along the others, except that their number is rounded; F alone: 1x1xF"};

/// The same, with the parameters size, stretch and clamp too.
Grid grid_from(const Arguments& arguments, std::int64_t least);

/// Blocks of 4 x 4 x 4 elements (or nodes) that are `factor` times as stiff as the others: each block with probability 1/3.
class Inclusions {
 public:
  /// No block is stiffer.
  Inclusions() = default;
  /// From the parameters inclusions and seed.
  Inclusions(const Arguments& arguments, const Grid& grid);

  double factor() const { return factor_; }
  /// True if the element (or node) p lies in a stiffer block.
  bool contain(const GridPoint& p) const {
    return factor_ != 1 && random_.unit((p[2] / kWidth * blocks_[1] + p[1] / kWidth) * blocks_[0] + p[0] / kWidth) < kShare;
  }
  /// The stiffness of the element (or node) p.
  double at(const GridPoint& p) const { return contain(p) ? factor_ : 1; }
  /// The stiffness between neighbours: the harmonic mean.
  double between(const GridPoint& p, const GridPoint& q) const {
    const double a = at(p), b = at(q);
    return a == b ? a : 2 * a * b / (a + b);
  }

 private:
  static constexpr std::int64_t kWidth = 4;
  static constexpr double kShare = 1.0 / 3;

  double factor_ = 1;
  GridPoint blocks_{};
  CounterRandom random_{0, 0};
};

/// A matrix with `unknowns` interleaved rows for each node of a grid.
class GridSource : public GeneratedSource, public CellSource {
 public:
  GridSource(std::string name, const Grid& grid, int unknowns)
      : GeneratedSource(std::move(name), grid.nodes() * unknowns, grid.nodes() * unknowns),
        grid_(grid),
        unknowns_(unknowns) {}

  std::int64_t placed_nodes() const final { return grid_.nodes(); }
  HostVector<double> coordinates(std::int64_t begin, std::int64_t end) const final;
  /// The boxes between the nodes: hexahedra, or quadrangles and lines where a direction has one node.
  MeshCells cells() const final;

 protected:
  void count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const override;
  /// Where node p lies, in direction d.
  virtual double coordinate(const GridPoint& p, std::size_t d) const { return static_cast<double>(p[d]) * grid_.edge[d]; }
  const Grid& grid() const { return grid_; }

 private:
  Grid grid_;
  int unknowns_;
};

/// Calls body(first_node, last_node) in parallel on pieces of the nodes of rows [begin, end).
void for_node_pieces(std::int64_t begin, std::int64_t end, int unknowns,
                     const std::function<void(std::int64_t, std::int64_t)>& body);

/// Writes the rows of node p that are in the part; the part starts at row `begin`. blocks[k][Unknowns·i + j] couples unknown
/// i of p with unknown j of its neighbour k = (dx+1) + 3·(dy+1) + 9·(dz+1).
template <int Unknowns>
void write_node(const Grid& grid, const GridPoint& p, const double (&blocks)[27][Unknowns * Unknowns], std::int64_t begin,
                HostCsr& part) {
  const std::int64_t node = grid.node(p);
  const bool clamped = grid.is_clamped(p);
  for (int i = 0; i < Unknowns; ++i) {
    const std::int64_t row = node * Unknowns + i - begin;
    if (row < 0 || row >= part.rows) continue;
    std::int64_t* column = part.col_idx.data() + part.row_ptr[static_cast<std::size_t>(row)];
    double* value = part.values.data() + part.row_ptr[static_cast<std::size_t>(row)];
    if (clamped) {
      *column = node * Unknowns + i;
      *value = 1;
      continue;
    }
    const std::int64_t first = grid.first(p, 0), last = grid.last(p, 0);
    for (std::int64_t z = grid.first(p, 2); z <= grid.last(p, 2); ++z)
      for (std::int64_t y = grid.first(p, 1); y <= grid.last(p, 1); ++y) {
        std::int64_t next_column = grid.node({first, y, z}) * Unknowns;
        const auto* block = &blocks[(first - p[0] + 1) + 3 * (y - p[1] + 1) + 9 * (z - p[2] + 1)];
        for (std::int64_t x = first; x <= last; ++x, ++block)
          for (int j = 0; j < Unknowns; ++j) {
            *column++ = next_column++;
            *value++ = (*block)[Unknowns * i + j];
          }
      }
  }
}

}  // namespace shardmat
