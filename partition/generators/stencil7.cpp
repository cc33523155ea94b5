// poisson7: the 7-point stencil of finite differences, 6 on the diagonal and -1 for each neighbour along an axis; with nz=1
// it couples 5 points. Jitter as in poisson27: it weakens couplings and strengthens diagonals by up to a tenth.
#include <algorithm>
#include <memory>
#include <utility>

#include "partition/generators/counter_random.h"
#include "partition/generators/families.h"
#include "partition/generators/grid.h"

namespace shardmat {
namespace {

constexpr double kJitter = 0.1;
constexpr std::uint64_t kStream = 11;

class Stencil7Source final : public GridSource {
 public:
  Stencil7Source(std::string name, const Grid& grid, bool uniform, std::uint64_t seed)
      : GridSource(std::move(name), grid, 1), jitter_(uniform ? 0 : kJitter), random_(seed, kStream) {}

 protected:
  void count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const override {
    for_nodes(begin, end, [&](std::int64_t node, const GridPoint& p) {
      std::int64_t length = 1;
      for (std::size_t d = 0; d < 3 && !grid().is_clamped(p); ++d) length += grid().last(p, d) - grid().first(p, d);
      lengths[node - begin] = length;
    });
  }

  void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const override {
    const std::int64_t stride[3] = {1, grid().size[0], grid().size[0] * grid().size[1]};
    for_nodes(begin, end, [&](std::int64_t node, const GridPoint& p) {
      auto at = static_cast<std::size_t>(part.row_ptr[static_cast<std::size_t>(node - begin)]);
      const auto write = [&](std::int64_t column, double value) {
        part.col_idx[at] = column;
        part.values[at++] = value;
      };
      const CounterRandom own = random_.of(node);
      const bool clamped = grid().is_clamped(p);
      // The pair's number is drawn by its smaller node.
      for (std::size_t d = 3; d-- > 0 && !clamped;)
        if (grid().first(p, d) < p[d])
          write(node - stride[d], jitter_ * random_.of(node - stride[d]).unit(static_cast<std::int64_t>(d)) - 1);
      write(node, clamped ? 1 : 6 * (1 + jitter_ * own.unit(3)));
      for (std::size_t d = 0; d < 3 && !clamped; ++d)
        if (grid().last(p, d) > p[d]) write(node + stride[d], jitter_ * own.unit(static_cast<std::int64_t>(d)) - 1);
    });
  }

 private:
  template <class F>
  void for_nodes(std::int64_t begin, std::int64_t end, const F& f) const {
    for_node_pieces(begin, end, 1, [&](std::int64_t first, std::int64_t last) {
      GridPoint p = grid().point(first);
      for (std::int64_t node = first; node < last; ++node, grid().advance(p)) f(node, p);
    });
  }

  double jitter_;
  CounterRandom random_;
};

constexpr GeneratorParameter kParameters[] = {
    {"n", "40", "nodes along each edge of the grid"},
    {"nx", "n", "nodes along x; node numbers run fastest along x"},
    {"ny", "n", "nodes along y"},
    {"nz", "n", "nodes along z; 1 for the 5-point stencil"},
    {"clamp", "0", "turn the nodes in this first fraction of the longest edge into identity rows and columns; 0: no nodes"},
    {"seed", "1", "seed of the jitter of values"},
    {"uniform", "off", "no jitter: 6 and -1"},
};

std::unique_ptr<RowSource> make(const GeneratorArguments& given) {
  const Arguments arguments("poisson7", kParameters, given);
  return std::make_unique<Stencil7Source>(arguments.specification(), grid_from(arguments, 1), arguments.flag("uniform"),
                                          arguments.seed());
}

}  // namespace

Generator poisson7_generator() { return {"poisson7", "7-point Poisson stencil on a grid of nodes", kParameters, make}; }

}  // namespace shardmat
