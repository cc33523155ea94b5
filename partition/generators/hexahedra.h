// Finite-element matrices on a grid of trilinear hexahedra: boxes whose corners are moved by up to a tenth of an edge and
// whose coefficient varies by up to a tenth, unless uniform. Inclusions multiply the coefficient.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "partition/generators/elements.h"
#include "partition/generators/grid.h"

namespace shardmat {

struct Jitter {
  bool uniform = false;
  std::uint64_t seed = 0;
};

/// Largest deviation of coefficients from 1, and of grid nodes in each direction in edge lengths. Below 1/6 no hexahedron
/// can be inverted.
inline constexpr double kElementJitter = 0.1;

template <class Physics>
std::unique_ptr<RowSource> make_hexahedra_source(std::string name, const Grid& grid, const Physics& physics,
                                                 const Jitter& jitter, const Inclusions& inclusions);

extern template std::unique_ptr<RowSource> make_hexahedra_source(std::string, const Grid&, const Diffusion&, const Jitter&,
                                                                 const Inclusions&);
extern template std::unique_ptr<RowSource> make_hexahedra_source(std::string, const Grid&, const Elasticity&, const Jitter&,
                                                                 const Inclusions&);

}  // namespace shardmat
