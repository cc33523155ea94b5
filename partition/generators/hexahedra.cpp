// Rows are made node by node along x. The gradients of the four elements to the right of a node are kept for
// the next node, whose left elements they are; so an element is integrated once for each of the four lines of
// nodes it touches, from a working set that fits the first-level cache whatever the grid's size.
#include "partition/generators/hexahedra.h"

#include <algorithm>
#include <utility>

#include "partition/generators/counter_random.h"

namespace shardmat {
namespace {

constexpr std::uint64_t kPositionStream = 1, kCoefficientStream = 2;

template <class Physics>
using NodeBlocks = double[27][Physics::kUnknowns * Physics::kUnknowns];

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
  JitteredWalker(const Grid& grid, const Physics& physics, std::uint64_t seed)
      : grid_(grid), physics_(physics), position_(seed, kPositionStream), coefficient_(seed, kCoefficientStream) {}

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
        physics_.element_row(element.gradients, corner, element.coefficient, row);
        add_row<Physics>(row, corner, blocks);
      }
  }

 private:
  struct Element {
    bool exists = false;
    double coefficient = 0;
    Hex8Gradients gradients;
  };

  /// Positions of the 3x3 nodes around line (p[1], p[2]) at this x, into planes_[slot]; `shift` moves plane 1
  /// to 0 first. Nodes outside the grid get positions that nobody uses.
  void place_plane(const GridPoint& p, std::int64_t x, int slot, bool shift = false) {
    if (shift) std::copy(&planes_[1][0][0], &planes_[1][0][0] + 27, &planes_[0][0][0]);
    for (std::int64_t k = 0; k < 9; ++k) {
      const GridPoint q = {x, p[1] + k % 3 - 1, p[2] + k / 3 - 1};
      const std::int64_t node = grid_.node(q);
      for (std::size_t d = 0; d < 3; ++d)
        planes_[slot][d][k] =
            static_cast<double>(q[d]) + kElementJitter * position_.symmetric(3 * node + static_cast<std::int64_t>(d));
    }
  }

  /// The four elements around the line between planes x and x + 1.
  void integrate(const GridPoint& p, std::int64_t x, int side) {
    for (int line = 0; line < 4; ++line) {
      Element& element = elements_[side][line];
      const GridPoint e = {x, p[1] + (line & 1) - 1, p[2] + (line >> 1) - 1};
      element.exists = true;
      for (std::size_t d = 0; d < 3; ++d) element.exists = element.exists && e[d] >= 0 && e[d] + 1 < grid_.size[d];
      if (!element.exists) continue;
      double corners[3][8];
      const int low = (line & 1) + 3 * (line >> 1);
      for (int d = 0; d < 3; ++d)
        for (int b = 0; b < 8; ++b) corners[d][b] = planes_[b & 1][d][low + (b >> 1 & 1) + 3 * (b >> 2)];
      compute_gradients(corners, element.gradients);
      element.coefficient = 1 + kElementJitter * coefficient_.symmetric(grid_.node(e));
    }
  }

  const Grid& grid_;
  const Physics& physics_;
  CounterRandom position_, coefficient_;
  double planes_[2][3][9];
  Element elements_[2][4];  ///< [side][line]; elements_[right_] is to the right of the last node
  int right_ = 1;
  GridPoint last_{-2, -2, -2};
};

/// All elements equal the unit cube.
template <class Physics>
class UniformWalker {
 public:
  UniformWalker(const Grid& grid, const Physics& physics) : grid_(grid) {
    double corners[3][8];
    for (int d = 0; d < 3; ++d)
      for (int b = 0; b < 8; ++b) corners[d][b] = b >> d & 1;
    Hex8Gradients gradients;
    compute_gradients(corners, gradients);
    for (int b = 0; b < 8; ++b) physics.element_row(gradients, b, 1, rows_[b]);
  }

  void visit(const GridPoint& p, NodeBlocks<Physics>& blocks) {
    for (int corner = 7; corner >= 0; --corner) {  // the elements around p in ascending order
      bool exists = true;
      for (std::size_t d = 0; d < 3; ++d) exists = exists && ((corner >> d & 1) != 0 ? p[d] > 0 : p[d] + 1 < grid_.size[d]);
      if (exists) add_row<Physics>(rows_[corner], corner, blocks);
    }
  }

 private:
  const Grid& grid_;
  double rows_[8][Physics::kUnknowns * Physics::kUnknowns][8];
};

template <class Physics>
class HexahedraSource final : public GridSource {
 public:
  HexahedraSource(std::string name, const Grid& grid, const Physics& physics, const Jitter& jitter)
      : GridSource(std::move(name), grid, Physics::kUnknowns), physics_(physics), jitter_(jitter) {}

  std::int64_t placed_nodes() const override { return grid().nodes(); }
  HostVector<double> coordinates(std::int64_t begin, std::int64_t end) const override {
    HostVector<double> all;
    all.reserve(static_cast<std::size_t>(3 * (end - begin)));
    const CounterRandom position(jitter_.seed, kPositionStream);
    GridPoint p = grid().point(begin);
    for (std::int64_t node = begin; node < end; ++node, grid().advance(p))
      for (std::size_t d = 0; d < 3; ++d)
        all.push_back(static_cast<double>(p[d]) +
                      (jitter_.uniform ? 0 : kElementJitter * position.symmetric(3 * node + static_cast<std::int64_t>(d))));
    return all;
  }

 protected:
  void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const override {
    for_node_pieces(begin, end, Physics::kUnknowns, [&](std::int64_t first, std::int64_t last) {
      if (jitter_.uniform) walk(UniformWalker<Physics>(grid(), physics_), first, last, begin, part);
      else walk(JitteredWalker<Physics>(grid(), physics_, jitter_.seed), first, last, begin, part);
    });
  }

 private:
  template <class Walker>
  void walk(Walker walker, std::int64_t first, std::int64_t last, std::int64_t begin, HostCsr& part) const {
    GridPoint p = grid().point(first);
    for (std::int64_t node = first; node < last; ++node, grid().advance(p)) {
      NodeBlocks<Physics> blocks = {};
      if (!grid().is_clamped(p)) walker.visit(p, blocks);
      write_node<Physics::kUnknowns>(grid(), p, blocks, begin, part);
    }
  }

  Physics physics_;
  Jitter jitter_;
};

}  // namespace

template <class Physics>
std::unique_ptr<RowSource> make_hexahedra_source(std::string name, const Grid& grid, const Physics& physics,
                                                 const Jitter& jitter) {
  return std::make_unique<HexahedraSource<Physics>>(std::move(name), grid, physics, jitter);
}

template std::unique_ptr<RowSource> make_hexahedra_source(std::string, const Grid&, const Diffusion&, const Jitter&);
template std::unique_ptr<RowSource> make_hexahedra_source(std::string, const Grid&, const Elasticity&, const Jitter&);

}  // namespace shardmat
