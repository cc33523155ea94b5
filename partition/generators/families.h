// The generators, each from its own file, for the list in generator.cpp.
#pragma once

#include "partition/generators/generator.h"

namespace shardmat {

Generator poisson27_generator();
Generator poisson7_generator();
Generator poisson_generator();
Generator elasticity_generator();
Generator mass_generator();
Generator convection_diffusion_generator();
Generator rmat_generator();
Generator banded_generator();
Generator diagonals_generator();
Generator random_generator();

}  // namespace shardmat
