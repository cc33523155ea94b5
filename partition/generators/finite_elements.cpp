// poisson and elasticity: on a grid of hexahedra, or on tetrahedra of a mesh file.
#include <memory>
#include <span>

#include "partition/generators/families.h"
#include "partition/generators/hexahedra.h"
#include "partition/generators/tetrahedra.h"

namespace shardmat {
namespace {

template <class Physics>
std::unique_ptr<RowSource> make_source(const Arguments& arguments, const Physics& physics) {
  if (const auto options = tet_options_from(arguments))
    return make_tetrahedra_source(arguments.specification(), *options, physics);
  const Jitter jitter{arguments.flag("uniform"), arguments.seed()};
  const Grid grid = grid_from(arguments, 2);
  return make_hexahedra_source(arguments.specification(), grid, physics, jitter, Inclusions(arguments, grid));
}

constexpr GeneratorParameter kElasticity[] = {
    {"n", "40", "nodes along each edge of the grid"},
    {"nx", "n", "nodes along x; node numbers run fastest along x"},
    {"ny", "n", "nodes along y"},
    {"nz", "n", "nodes along z"},
    kSizeParameter,
    {"stretch", "1", "edges of the grid's elements along x, y and z, as AxBxC; F alone: 1x1xF", true},
    {"inclusions", "1",
     "stiffness of blocks of 4 x 4 x 4 elements, a third of the blocks, drawn by the seed; the others have 1"},
    {"mesh", "none", "HDF5 file with /points and /tetrahedra, instead of a grid; its path may hold no comma"},
    {"degree", "1", "degree of the tetrahedra: 1 (4 nodes) or 2 (10 nodes)"},
    {"order", "mesh", "order of the mesh's nodes: mesh (as in the file) or random (by seed)"},
    {"clamp", "0",
     "turn the nodes in this first fraction of the longest edge (of a mesh: of each connected body's longest axis) into "
     "identity rows and columns; 0: no nodes"},
    {"seed", "1", "seed of the jitter of node positions and coefficients, and of the inclusions"},
    {"uniform", "off", "no jitter"},
    {"E", "1", "Young's modulus"},
    {"nu", "0.3", "Poisson's ratio, from 0 to 0.4999"},
};
constexpr std::span kPoisson(kElasticity, std::size(kElasticity) - 2);

std::unique_ptr<RowSource> make_poisson(const GeneratorArguments& given) {
  return make_source(Arguments("poisson", kPoisson, given), Diffusion{});
}

std::unique_ptr<RowSource> make_elasticity(const GeneratorArguments& given) {
  const Arguments arguments("elasticity", kElasticity, given);
  return make_source(arguments, Elasticity(arguments.real("E", 1e-30, 1e30), arguments.real("nu", 0, 0.4999)));
}

}  // namespace

Generator poisson_generator() {
  return {"poisson", "Poisson's equation: trilinear hexahedra on a grid, or tetrahedra of a mesh", kPoisson, make_poisson};
}

Generator elasticity_generator() {
  return {"elasticity", "linear elasticity, 3 unknowns a node: trilinear hexahedra on a grid, or tetrahedra of a mesh",
          kElasticity, make_elasticity};
}

}  // namespace shardmat
