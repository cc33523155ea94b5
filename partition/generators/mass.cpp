// mass: the mass matrix of elasticity's hexahedra or tetrahedra for the density 1. A row couples equal components only.
// Clamped nodes are treated as in elasticity.
#include <memory>
#include <utility>

#include "partition/generators/families.h"
#include "partition/generators/hexahedra_walk.h"
#include "partition/generators/tetrahedra.h"

namespace shardmat {
namespace {

constexpr int kComponents = 3;

/// ∫ N_a N_b of one component; exact if the element is a box.
struct Density {
  static constexpr int kUnknowns = 1;
  using Hexahedron = Hex8Values;
  static void integrate(const double (&x)[3][8], Hex8Values& values) { compute_values(x, values); }

  void element_row(const Hex8Values& values, int a, double /*stiffness*/, double (&row)[1][8]) const {
    for (int b = 0; b < 8; ++b) {
      row[0][b] = 0;
      for (int p = 0; p < 8; ++p) row[0][b] += values.at[p][a] * values.at[p][b];
    }
  }
};

class MassSource final : public HexahedraGridSource {
 public:
  MassSource(std::string name, const Grid& grid, const Jitter& jitter, bool lumped)
      : HexahedraGridSource(std::move(name), grid, kComponents, jitter), lumped_(lumped) {}

 private:
  void count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const override {
    for_node_pieces(begin, end, kComponents, [&](std::int64_t first, std::int64_t last) {
      GridPoint p = grid().point(first);
      for (std::int64_t node = first; node < last; ++node, grid().advance(p))
        for (std::int64_t row = kComponents * node; row < kComponents * (node + 1); ++row)
          if (row >= begin && row < end) lengths[row - begin] = lumped_ ? 1 : grid().neighbours(p);
    });
  }

  void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const override {
    visit_nodes(Density{}, Inclusions(), begin, end, [&](const GridPoint& p, const NodeBlocks<Density>& blocks) {
      const std::int64_t row = kComponents * grid().node(p) - begin;
      for (int i = 0; i < kComponents; ++i)
        if (row + i >= 0 && row + i < part.rows)
          write_row(p, i, blocks, part, part.row_ptr[static_cast<std::size_t>(row + i)]);
    });
  }

  void write_row(const GridPoint& p, int i, const NodeBlocks<Density>& blocks, HostCsr& part, std::int64_t at) const {
    const auto write = [&](const GridPoint& q, double value) {
      part.col_idx[static_cast<std::size_t>(at)] = kComponents * grid().node(q) + i;
      part.values[static_cast<std::size_t>(at++)] = value;
    };
    if (grid().is_clamped(p)) return write(p, 1);
    if (lumped_) {
      double sum = 0;
      for (const auto& block : blocks) sum += block[0];
      return write(p, sum);
    }
    for (std::int64_t z = grid().first(p, 2); z <= grid().last(p, 2); ++z)
      for (std::int64_t y = grid().first(p, 1); y <= grid().last(p, 1); ++y)
        for (std::int64_t x = grid().first(p, 0); x <= grid().last(p, 0); ++x)
          write({x, y, z}, blocks[(x - p[0] + 1) + 3 * (y - p[1] + 1) + 9 * (z - p[2] + 1)][0]);
  }

  bool lumped_;
};

constexpr GeneratorParameter kParameters[] = {
    {"n", "40", "nodes along each edge of the grid"},
    {"nx", "n", "nodes along x; node numbers run fastest along x"},
    {"ny", "n", "nodes along y"},
    {"nz", "n", "nodes along z"},
    kSizeParameter,
    {"stretch", "1", "edges of the grid's elements along x, y and z, as AxBxC; F alone: 1x1xF", true},
    {"inclusions", "1", "no effect, since the density is 1 everywhere; taken so that the keys of elasticity fit"},
    {"mesh", "none", "HDF5 file with /points and /tetrahedra, instead of a grid; its path may hold no comma"},
    {"degree", "1", "degree of the tetrahedra: 1 (4 nodes) or 2 (10 nodes)"},
    {"order", "mesh", "order of the mesh's nodes: mesh (as in the file) or random (by seed)"},
    {"clamp", "0",
     "turn the nodes that elasticity clamps into identity rows and columns, too: each of their unknowns adds the eigenvalue "
     "1 to K x = λ M x; 0: no nodes"},
    {"seed", "1", "seed of the jitter of a grid's node positions, and of order=random"},
    {"uniform", "off", "no jitter"},
    {"E", "1", "no effect; see inclusions"},
    {"nu", "0.3", "no effect; see inclusions"},
    {"lumped", "off", "a diagonal matrix: the row sums; on meshes the diagonal, scaled to the mass of each element"},
};

std::unique_ptr<RowSource> make(const GeneratorArguments& given) {
  const Arguments arguments("mass", kParameters, given);
  arguments.real("E", 1e-30, 1e30);
  arguments.real("nu", 0, 0.4999);
  const bool lumped = arguments.flag("lumped");
  if (auto options = tet_options_from(arguments)) {
    options->diagonal = lumped;
    options->jitter.uniform = true;  // of the stiffness; the density is 1 everywhere
    return make_tetrahedra_source(arguments.specification(), *options, TetMass{lumped});
  }
  const Grid grid = grid_from(arguments, 2);
  const Inclusions checked(arguments, grid);
  return std::make_unique<MassSource>(arguments.specification(), grid, Jitter{arguments.flag("uniform"), arguments.seed()},
                                      lumped);
}

}  // namespace

Generator mass_generator() {
  return {"mass", "mass matrix of elasticity's hexahedra or tetrahedra, density 1, 3 unknowns a node", kParameters, make};
}

}  // namespace shardmat
