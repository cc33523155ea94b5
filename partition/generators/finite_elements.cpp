// poisson and elasticity: on a grid of hexahedra, or on tetrahedra of a mesh file.
#include <fmt/format.h>

#include <memory>

#include "partition/generators/families.h"
#include "partition/generators/hexahedra.h"

namespace shardmat {
namespace {

template <class Physics>
std::unique_ptr<RowSource> make_source(const Arguments& arguments, const Physics& physics) {
  const Jitter jitter{arguments.flag("uniform"), arguments.seed()};
  return make_hexahedra_source(arguments.specification(), grid_from(arguments, 2), physics, jitter);
}

constexpr GeneratorParameter kElasticity[] = {
    {"n", "40", "nodes along each edge of the grid"},
    {"nx", "n", "nodes along x, the fastest numbered"},
    {"ny", "n", "nodes along y"},
    {"nz", "n", "nodes along z"},
    {"clamp", "0",
     "nodes in this first fraction of the longest edge become identity rows and columns; 0 for none"},
    {"seed", "1", "of the jitter of node positions and coefficients"},
    {"uniform", "off", "no jitter"},
    {"E", "1", "Young's modulus"},
    {"nu", "0.3", "Poisson's ratio, from 0 to 0.49"},
};
constexpr std::span kPoisson(kElasticity, std::size(kElasticity) - 2);

std::unique_ptr<RowSource> make_poisson(const GeneratorArguments& given) {
  return make_source(Arguments("poisson", kPoisson, given), Diffusion{});
}

std::unique_ptr<RowSource> make_elasticity(const GeneratorArguments& given) {
  const Arguments arguments("elasticity", kElasticity, given);
  return make_source(arguments, Elasticity(arguments.real("E", 1e-30, 1e30), arguments.real("nu", 0, 0.49)));
}

}  // namespace

Generator poisson_generator() {
  return {"poisson", "Poisson's equation: trilinear hexahedra on a grid, or tetrahedra of a mesh", kPoisson,
          make_poisson};
}

Generator elasticity_generator() {
  return {"elasticity",
          "linear elasticity, 3 unknowns a node: trilinear hexahedra on a grid, or tetrahedra of a mesh",
          kElasticity, make_elasticity};
}

}  // namespace shardmat
