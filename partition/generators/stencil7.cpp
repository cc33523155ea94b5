// poisson7: the 7-point stencil of finite differences, 6 on the diagonal and -1 for each neighbour along an axis; with nz=1
// it couples 5 points. Jitter, stretch, inclusions and the faces of the grid as in poisson27.
#include <memory>
#include <utility>

#include "partition/generators/counter_random.h"
#include "partition/generators/families.h"
#include "partition/generators/seven_point.h"

namespace shardmat {
namespace {

constexpr double kJitter = 0.1;
constexpr std::uint64_t kStream = 11;

class Stencil7Source final : public SevenPointSource {
 public:
  Stencil7Source(std::string name, const Grid& grid, const Inclusions& inclusions, bool uniform, std::uint64_t seed)
      : SevenPointSource(std::move(name), grid),
        inclusions_(inclusions),
        jitter_(uniform ? 0 : kJitter),
        random_(seed, kStream) {}

 private:
  double coupling(const GridPoint& p, std::size_t d, std::int64_t side) const override {
    const double weight = 1 / (grid().edge[d] * grid().edge[d]);
    GridPoint q = p;
    q[d] += side;
    if (!grid().has(q)) return -weight * inclusions_.at(p);
    const std::int64_t smaller = grid().node(side < 0 ? q : p);  // it draws the number of the pair
    return (jitter_ * random_.of(smaller).unit(static_cast<std::int64_t>(d)) - 1) * weight * inclusions_.between(p, q);
  }

  Inclusions inclusions_;
  double jitter_;
  CounterRandom random_;
};

constexpr GeneratorParameter kParameters[] = {
    {"n", "40", "nodes along each edge of the grid"},
    {"nx", "n", "nodes along x; node numbers run fastest along x"},
    {"ny", "n", "nodes along y"},
    {"nz", "n", "nodes along z; 1 for 5 points, of which each row has both missing neighbours in its diagonal"},
    kSizeParameter,
    {"stretch", "1", "distances of neighbours along x, y and z, as AxBxC; F alone: 1x1xF", true},
    {"inclusions", "1",
     "stiffness of blocks of 4 x 4 x 4 nodes, a third of the blocks, drawn by the seed; the others have 1"},
    {"clamp", "0", "turn the nodes in this first fraction of the longest edge into identity rows and columns; 0: no nodes"},
    {"seed", "1", "seed of the jitter of values, and of the inclusions"},
    {"uniform", "off", "no jitter: 6 and -1, without stretch and inclusions"},
};

std::unique_ptr<RowSource> make(const GeneratorArguments& given) {
  const Arguments arguments("poisson7", kParameters, given);
  const Grid grid = grid_from(arguments, 1);
  return std::make_unique<Stencil7Source>(arguments.specification(), grid, Inclusions(arguments, grid),
                                          arguments.flag("uniform"), arguments.seed());
}

}  // namespace

Generator poisson7_generator() { return {"poisson7", "7-point Poisson stencil on a grid of nodes", kParameters, make}; }

}  // namespace shardmat
