#include "partition/generators/generator.h"

#include <vector>

#include "partition/generators/arguments.h"
#include "partition/generators/families.h"

namespace shardmat {
std::span<const Generator> generators() {
  static const std::vector<Generator> list = {
      poisson27_generator(),             // stencil.cpp
      poisson7_generator(),              // stencil7.cpp
      poisson_generator(),               // finite_elements.cpp
      elasticity_generator(),            // finite_elements.cpp
      mass_generator(),                  // mass.cpp
      convection_diffusion_generator(),  // convection_diffusion.cpp
      rmat_generator(),                  // rmat.cpp
      banded_generator(),                // banded.cpp
      diagonals_generator(),             // diagonals.cpp
      random_generator(),                // random.cpp
  };
  return list;
}

bool is_generator_specification(std::string_view text) { return is_specification(generators(), text); }

std::string mesh_of(std::string_view specification) {
  for (std::size_t at = specification.find_first_of(":,"); at != std::string_view::npos;
       at = specification.find(',', at + 1)) {
    constexpr std::string_view kKey = "mesh=";
    const std::string_view argument = specification.substr(at + 1, specification.find(',', at + 1) - at - 1);
    if (argument.substr(0, kKey.size()) == kKey) return std::string(argument.substr(kKey.size()));
  }
  return "";
}

std::unique_ptr<RowSource> make_generator(std::string_view specification) {
  return make_specified(generators(), specification);
}

}  // namespace shardmat
