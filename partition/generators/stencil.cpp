// poisson27: the 27-point stencil of HPCG, 26 on the diagonal and -1 for each neighbour. Jitter weakens each
// coupling by up to a tenth and strengthens each diagonal likewise, so the matrix stays symmetric and
// diagonally dominant.
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
  StencilSource(std::string name, const Grid& grid, bool uniform, std::uint64_t seed)
      : GridSource(std::move(name), grid, 1), jitter_(uniform ? 0 : kJitter), random_(seed, 0) {}

 protected:
  void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const override {
    for_node_pieces(begin, end, 1, [&](std::int64_t first, std::int64_t last) {
      GridPoint p = grid().point(first);
      double blocks[27][1];
      for (std::int64_t node = first; node < last; ++node, grid().advance(p)) {
        compute(node, blocks);
        write_node<1>(grid(), p, blocks, begin, part);
      }
    });
  }

 private:
  /// Neighbours outside the grid get values that nobody reads.
  void compute(std::int64_t node, double (&blocks)[27][1]) const {
    const CounterRandom own = random_.of(node);
    for (std::int64_t k = 0; k < 27; ++k) {
      const std::int64_t offset =
          (k / 9 - 1) * grid().size[1] * grid().size[0] + (k / 3 % 3 - 1) * grid().size[0] + k % 3 - 1;
      if (k == 13) blocks[k][0] = 26 * (1 + jitter_ * own.unit(13));
      else  // the pair's number is drawn by its smaller node
        blocks[k][0] = jitter_ * (k > 13 ? own.unit(k) : random_.of(node + offset).unit(26 - k)) - 1;
    }
  }

  double jitter_;
  CounterRandom random_;
};

constexpr GeneratorParameter kParameters[] = {
    {"n", "40", "nodes along each edge of the grid"},
    {"nx", "n", "nodes along x; node numbers run fastest along x"},
    {"ny", "n", "nodes along y"},
    {"nz", "n", "nodes along z"},
    {"clamp", "0", "turn the nodes in this first fraction of the longest edge into identity rows and columns; 0: no nodes"},
    {"seed", "1", "seed of the jitter of values"},
    {"uniform", "off", "no jitter: 26 and -1"},
};

std::unique_ptr<RowSource> make(const GeneratorArguments& given) {
  const Arguments arguments("poisson27", kParameters, given);
  return std::make_unique<StencilSource>(arguments.specification(), grid_from(arguments, 1), arguments.flag("uniform"),
                                         arguments.seed());
}

}  // namespace

Generator poisson27_generator() { return {"poisson27", "27-point Poisson stencil on a grid of nodes", kParameters, make}; }

}  // namespace shardmat
