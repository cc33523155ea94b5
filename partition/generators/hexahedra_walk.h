// Walks over the nodes of a grid of hexahedra and sums the element matrices around each node. Nodes are visited one by one
// along x. The integrals of the four elements to the right of a node are kept for the next node, whose left elements they
// are; so an element is integrated once for each of the four lines of nodes it touches, from a working set that fits the
// first-level cache whatever the grid's size.
//
// A Physics has kUnknowns, the type Hexahedron of what is needed at the quadrature points, integrate() to compute it, and
// element_row().
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "partition/generators/counter_random.h"
#include "partition/generators/hexahedra.h"

namespace shardmat {

inline constexpr std::uint64_t kPositionStream = 1, kCoefficientStream = 2;

template <class Physics>
using NodeBlocks = double[27][Physics::kUnknowns * Physics::kUnknowns];

/// True if the grid has the element whose least corner would be e.
inline bool has_element(const Grid& grid, const GridPoint& e) {
  bool exists = true;
  for (std::size_t d = 0; d < 3; ++d) exists = exists && e[d] >= 0 && e[d] + 1 < grid.size[d];
  return exists;
}

/// Coordinate d of node p, moved.
inline double jittered(const Grid& grid, const CounterRandom& position, const GridPoint& p, std::size_t d) {
  const double moved = kElementJitter * position.symmetric(3 * grid.node(p) + static_cast<std::int64_t>(d));
  return (static_cast<double>(p[d]) + moved) * grid.edge[d];
}

/// Adds the row of corner `corner` to the blocks of the node at that corner.
template <class Physics>
void add_row(const double (&row)[Physics::kUnknowns * Physics::kUnknowns][8], int corner, NodeBlocks<Physics>& blocks) {
  const int own = (corner & 1) + 3 * (corner >> 1 & 1) + 9 * (corner >> 2);
  for (int b = 0; b < 8; ++b) {
    double* block = blocks[13 - own + (b & 1) + 3 * (b >> 1 & 1) + 9 * (b >> 2)];
    for (int ij = 0; ij < Physics::kUnknowns * Physics::kUnknowns; ++ij) block[ij] += row[ij][b];
  }
}

/// Visits nodes in ascending order and gives the elements around the current one.
template <class Physics>
class JitteredWalker {
 public:
  JitteredWalker(const Grid& grid, const Physics& physics, const Inclusions& inclusions, std::uint64_t seed)
      : grid_(grid),
        physics_(physics),
        inclusions_(inclusions),
        position_(seed, kPositionStream),
        coefficient_(seed, kCoefficientStream) {}

  void visit(const GridPoint& p, NodeBlocks<Physics>& blocks) {
    const bool next = p[0] == last_[0] + 1 && p[1] == last_[1] && p[2] == last_[2];
    if (next) {
      right_ ^= 1;
    } else {
      place_plane(p, p[0] - 1, 0);
      place_plane(p, p[0], 1);
      integrate(p, p[0] - 1, right_ ^ 1);
    }
    place_plane(p, p[0] + 1, 1, true);
    integrate(p, p[0], right_);
    last_ = p;
    double row[Physics::kUnknowns * Physics::kUnknowns][8];
    for (int line = 0; line < 4; ++line)
      for (int side = 0; side < 2; ++side) {
        const Element& element = elements_[side == 0 ? right_ ^ 1 : right_][line];
        if (!element.exists) continue;
        const int corner = (1 - side) + 2 * (1 - (line & 1)) + 4 * (1 - (line >> 1));
        physics_.element_row(element.points, corner, element.coefficient, row);
        add_row<Physics>(row, corner, blocks);
      }
  }

 private:
  struct Element {
    bool exists = false;
    double coefficient = 0;
    typename Physics::Hexahedron points;
  };

  /// Positions of the 3x3 nodes around line (p[1], p[2]) at this x, into planes_[slot]; `shift` moves plane 1
  /// to 0 first. Nodes outside the grid get positions that nobody uses.
  void place_plane(const GridPoint& p, std::int64_t x, int slot, bool shift = false) {
    if (shift) std::copy(&planes_[1][0][0], &planes_[1][0][0] + 27, &planes_[0][0][0]);
    for (std::int64_t k = 0; k < 9; ++k) {
      const GridPoint q = {x, p[1] + k % 3 - 1, p[2] + k / 3 - 1};
      for (std::size_t d = 0; d < 3; ++d) planes_[slot][d][k] = jittered(grid_, position_, q, d);
    }
  }

  /// The four elements around the line between planes x and x + 1.
  void integrate(const GridPoint& p, std::int64_t x, int side) {
    for (int line = 0; line < 4; ++line) {
      Element& element = elements_[side][line];
      const GridPoint e = {x, p[1] + (line & 1) - 1, p[2] + (line >> 1) - 1};
      element.exists = has_element(grid_, e);
      if (!element.exists) continue;
      double corners[3][8];
      const int low = (line & 1) + 3 * (line >> 1);
      for (int d = 0; d < 3; ++d)
        for (int b = 0; b < 8; ++b) corners[d][b] = planes_[b & 1][d][low + (b >> 1 & 1) + 3 * (b >> 2)];
      Physics::integrate(corners, element.points);
      element.coefficient = (1 + kElementJitter * coefficient_.symmetric(grid_.node(e))) * inclusions_.at(e);
    }
  }

  const Grid& grid_;
  const Physics& physics_;
  const Inclusions& inclusions_;
  CounterRandom position_, coefficient_;
  double planes_[2][3][9];
  Element elements_[2][4];  ///< [side][line]; elements_[right_] is to the right of the last node
  int right_ = 1;
  GridPoint last_{-2, -2, -2};
};

/// All elements are the same box.
template <class Physics>
class UniformWalker {
 public:
  UniformWalker(const Grid& grid, const Physics& physics, const Inclusions& inclusions)
      : grid_(grid), inclusions_(inclusions) {
    double corners[3][8];
    for (std::size_t d = 0; d < 3; ++d)
      for (int b = 0; b < 8; ++b) corners[d][b] = (b >> d & 1) * grid.edge[d];
    typename Physics::Hexahedron points;
    Physics::integrate(corners, points);
    for (int b = 0; b < 8; ++b) {
      physics.element_row(points, b, 1, rows_[0][b]);
      physics.element_row(points, b, inclusions.factor(), rows_[1][b]);
    }
  }

  void visit(const GridPoint& p, NodeBlocks<Physics>& blocks) {
    for (int corner = 7; corner >= 0; --corner) {  // the elements around p in ascending order
      const GridPoint e = {p[0] - (corner & 1), p[1] - (corner >> 1 & 1), p[2] - (corner >> 2)};
      if (has_element(grid_, e)) add_row<Physics>(rows_[inclusions_.contain(e) ? 1 : 0][corner], corner, blocks);
    }
  }

 private:
  const Grid& grid_;
  const Inclusions& inclusions_;
  double rows_[2][8][Physics::kUnknowns * Physics::kUnknowns][8];  ///< [in an inclusion][corner]
};

/// A matrix of `rows_a_node` rows for each node of a grid of hexahedra.
class HexahedraGridSource : public GridSource {
 public:
  HexahedraGridSource(std::string name, const Grid& grid, int rows_a_node, const Jitter& jitter)
      : GridSource(std::move(name), grid, rows_a_node), rows_a_node_(rows_a_node), jitter_(jitter) {}

 protected:
  double coordinate(const GridPoint& p, std::size_t d) const final {
    if (jitter_.uniform) return GridSource::coordinate(p, d);
    return jittered(grid(), CounterRandom(jitter_.seed, kPositionStream), p, d);
  }

  /// Calls use(p, blocks) in parallel for the nodes of the rows [begin, end); blocks as in write_node(), 0 for clamped
  /// nodes.
  template <class Physics, class Use>
  void visit_nodes(const Physics& physics, const Inclusions& inclusions, std::int64_t begin, std::int64_t end,
                   const Use& use) const {
    const auto walk = [&](auto walker, std::int64_t first, std::int64_t last) {
      GridPoint p = grid().point(first);
      for (std::int64_t node = first; node < last; ++node, grid().advance(p)) {
        NodeBlocks<Physics> blocks = {};
        if (!grid().is_clamped(p)) walker.visit(p, blocks);
        use(p, blocks);
      }
    };
    for_node_pieces(begin, end, rows_a_node_, [&](std::int64_t first, std::int64_t last) {
      if (jitter_.uniform) walk(UniformWalker<Physics>(grid(), physics, inclusions), first, last);
      else walk(JitteredWalker<Physics>(grid(), physics, inclusions, jitter_.seed), first, last);
    });
  }

 private:
  int rows_a_node_;
  Jitter jitter_;
};

}  // namespace shardmat
