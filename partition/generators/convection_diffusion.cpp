// convection_diffusion: -Δu + velocity·∇u by finite differences on a grid whose neighbours are 1 apart. The wind is
// differenced upwind, to first order. Every coupling is negative, and the sum of a row is 0, or positive at the faces: the
// matrix is an M-matrix. u is 0 around the grid.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "partition/generators/families.h"
#include "partition/generators/seven_point.h"

namespace shardmat {
namespace {

class ConvectionDiffusionSource final : public SevenPointSource {
 public:
  ConvectionDiffusionSource(std::string name, const Grid& grid, bool rotating, double peclet)
      : SevenPointSource(std::move(name), grid), rotating_(rotating), peclet_(peclet) {}

 private:
  double coupling(const GridPoint& p, std::size_t d, std::int64_t side) const override {
    if (grid().size[d] == 1) return 0;
    const double inward = -static_cast<double>(side) * wind(p, d);  // of the wind, from the neighbour to p
    return -1 - peclet_ * std::max(inward, 0.0);
  }

  /// The wind along d, from -1 to 1.
  double wind(const GridPoint& p, std::size_t d) const {
    if (!rotating_) return 1;
    if (d == 2) return 0;
    const auto from_axis = [&](std::size_t k) { return static_cast<double>(2 * p[k] - (grid().size[k] - 1)); };
    const auto reach = static_cast<double>(std::max(grid().size[0], grid().size[1]) - 1);
    return (d == 0 ? -from_axis(1) : from_axis(0)) / reach;
  }

  bool rotating_;
  double peclet_;
};

constexpr GeneratorParameter kParameters[] = {
    {"n", "40", "nodes along each edge of the grid; a direction of one node is left out"},
    {"nx", "n", "nodes along x; node numbers run fastest along x"},
    {"ny", "n", "nodes along y"},
    {"nz", "n", "nodes along z; 1 for two dimensions"},
    {"peclet", "10", "cell Peclet number, from 0: largest wind along an axis · distance of neighbours / diffusivity"},
    {"wind", "diagonal", "diagonal (1 along each axis) or rotating (about the grid's middle line along z)"},
};

std::unique_ptr<RowSource> make(const GeneratorArguments& given) {
  const Arguments arguments("convection_diffusion", kParameters, given);
  const Grid grid = free_grid_from(arguments, 1);
  if (grid.nodes() == 1) arguments.refuse("one node has no neighbours; some direction needs 2 nodes");
  const bool rotating = arguments.choice("wind", {"diagonal", "rotating"}) == "rotating";
  if (rotating && (grid.size[0] == 1 || grid.size[1] == 1))
    arguments.refuse(fmt::format("a rotating wind needs 2 nodes along x and y, not {} and {}", grid.size[0], grid.size[1]));
  return std::make_unique<ConvectionDiffusionSource>(arguments.specification(), grid, rotating,
                                                     arguments.real("peclet", 0, 1e12));
}

}  // namespace

Generator convection_diffusion_generator() {
  return {"convection_diffusion", "convection and diffusion on a grid of nodes, upwind differences: unsymmetric",
          kParameters, make};
}

}  // namespace shardmat
