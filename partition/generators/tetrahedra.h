// Finite-element matrices on a mesh of linear or quadratic tetrahedra.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "partition/generators/elements.h"
#include "partition/generators/hexahedra.h"

namespace shardmat {

struct TetOptions {
  std::string mesh;           ///< path of the file
  int degree = 1;             ///< 1 or 2
  double clamp = 0;           ///< fraction of each body's longest axis whose nodes are clamped; 0: none
  bool random_order = false;  ///< renumber nodes at random, by the seed
  Jitter jitter;              ///< of the elements' coefficients only; nodes do not move
  bool diagonal = false;      ///< the rows hold their diagonal alone
};

/// The options in the parameters of a generator, if they name a mesh. Throws Error(usage) for a parameter of grids with a
/// mesh and for a parameter of meshes without one.
std::optional<TetOptions> tet_options_from(const Arguments& arguments);

template <class Physics>
std::unique_ptr<RowSource> make_tetrahedra_source(std::string name, const TetOptions& options, const Physics& physics);

extern template std::unique_ptr<RowSource> make_tetrahedra_source(std::string, const TetOptions&, const Diffusion&);
extern template std::unique_ptr<RowSource> make_tetrahedra_source(std::string, const TetOptions&, const Elasticity&);
extern template std::unique_ptr<RowSource> make_tetrahedra_source(std::string, const TetOptions&, const TetMass&);

}  // namespace shardmat
