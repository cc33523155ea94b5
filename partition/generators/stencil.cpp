// poisson27: the 27-point stencil of HPCG, 26 on the diagonal and -1 for each neighbour. Jitter weakens each coupling by up
// to a tenth. The diagonal is minus the sum of the couplings, so the sum of an inner row is 0. At the faces of the grid the
// couplings to the missing neighbours stay in the diagonal: their values are known to be 0, and the matrix is regular.
#include <algorithm>
#include <memory>
#include <utility>

#include "partition/generators/counter_random.h"
#include "partition/generators/families.h"
#include "partition/generators/grid.h"

namespace shardmat {
namespace {

constexpr double kJitter = 0.1;

class StencilSource final : public GridSource {
 public:
  StencilSource(std::string name, const Grid& grid, const Inclusions& inclusions, bool uniform, std::uint64_t seed)
      : GridSource(std::move(name), grid, 1), inclusions_(inclusions), jitter_(uniform ? 0 : kJitter), random_(seed, 0) {
    for (std::int64_t k = 0; k < 27; ++k) {
      const GridPoint step = neighbour({0, 0, 0}, k);
      double steps = 0, distance = 0;
      for (std::size_t d = 0; d < 3; ++d)
        if (step[d] != 0) steps += 1, distance += grid.edge[d] * grid.edge[d];
      weight_[k] = k == 13 ? 0 : steps / distance;
    }
  }

 protected:
  void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const override {
    for_node_pieces(begin, end, 1, [&](std::int64_t first, std::int64_t last) {
      GridPoint p = grid().point(first);
      double blocks[27][1];
      for (std::int64_t node = first; node < last; ++node, grid().advance(p)) {
        compute(p, blocks);
        write_node<1>(grid(), p, blocks, begin, part);
      }
    });
  }

 private:
  /// Node k of the 27 around p.
  static GridPoint neighbour(const GridPoint& p, std::int64_t k) {
    return {p[0] + k % 3 - 1, p[1] + k / 3 % 3 - 1, p[2] + k / 9 - 1};
  }

  void compute(const GridPoint& p, double (&blocks)[27][1]) const {
    const std::int64_t node = grid().node(p);
    const CounterRandom own = random_.of(node);
    double sum = 0;
    for (std::int64_t k = 0; k < 27; ++k) {
      if (k == 13) continue;
      const GridPoint q = neighbour(p, k);
      double weakening = 0, stiffness = 0;
      if (grid().has(q)) {  // the pair's number is drawn by its smaller node
        weakening = jitter_ * (k > 13 ? own.unit(k) : random_.of(grid().node(q)).unit(26 - k));
        stiffness = inclusions_.between(p, q);
      } else {
        stiffness = inclusions_.at(p);
      }
      blocks[k][0] = (weakening - 1) * weight_[k] * stiffness;
      sum += blocks[k][0];
    }
    blocks[13][0] = -sum;
  }

  Inclusions inclusions_;
  double weight_[27];  ///< of each coupling: (its length in grid steps / its length)²
  double jitter_;
  CounterRandom random_;
};

constexpr GeneratorParameter kParameters[] = {
    {"n", "40", "nodes along each edge of the grid"},
    {"nx", "n", "nodes along x; node numbers run fastest along x"},
    {"ny", "n", "nodes along y"},
    {"nz", "n", "nodes along z"},
    kSizeParameter,
    {"stretch", "1", "distances of neighbours along x, y and z, as AxBxC; F alone: 1x1xF", true},
    {"inclusions", "1",
     "stiffness of blocks of 4 x 4 x 4 nodes, a third of the blocks, drawn by the seed; the others have 1"},
    {"clamp", "0", "turn the nodes in this first fraction of the longest edge into identity rows and columns; 0: no nodes"},
    {"seed", "1", "seed of the jitter of values, and of the inclusions"},
    {"uniform", "off", "no jitter: 26 and -1, without stretch and inclusions"},
};

std::unique_ptr<RowSource> make(const GeneratorArguments& given) {
  const Arguments arguments("poisson27", kParameters, given);
  const Grid grid = grid_from(arguments, 1);
  return std::make_unique<StencilSource>(arguments.specification(), grid, Inclusions(arguments, grid),
                                         arguments.flag("uniform"), arguments.seed());
}

}  // namespace

Generator poisson27_generator() { return {"poisson27", "27-point Poisson stencil on a grid of nodes", kParameters, make}; }

}  // namespace shardmat
