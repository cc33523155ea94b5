#include "partition/generators/generator.h"

#include <vector>

#include "partition/generators/arguments.h"
#include "partition/generators/families.h"

namespace shardmat {
std::span<const Generator> generators() {
  static const std::vector<Generator> list = {
      poisson27_generator(),   // stencil.cpp
      poisson7_generator(),    // stencil7.cpp
      poisson_generator(),     // finite_elements.cpp
      elasticity_generator(),  // finite_elements.cpp
      rmat_generator(),        // rmat.cpp
      banded_generator(),      // banded.cpp
      diagonals_generator(),   // diagonals.cpp
      random_generator(),      // random.cpp
  };
  return list;
}

bool is_generator_specification(std::string_view text) { return is_specification(generators(), text); }

std::unique_ptr<RowSource> make_generator(std::string_view specification) {
  return make_specified(generators(), specification);
}

}  // namespace shardmat
