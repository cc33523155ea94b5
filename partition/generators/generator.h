// Generates matrices from a formula or a mesh, any range of rows at a time. So each rank can make its own rows of a matrix
// that is too large for one host. Only the list in generator.cpp knows all generators.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "partition/source/row_source.h"

namespace shardmat {

/// A parameter of a generator, for --help and for checking a specification.
struct GeneratorParameter {
  std::string_view name;           ///< "n"
  std::string_view default_value;  ///< "40"; empty if it must be given, "off" for a flag
  std::string_view help;           ///< one line with unit and range
  bool rare = false;               ///< --help leaves it to --help-all
};

/// Parameter values by name, as text; every parameter of the generator is present once defaults are filled in.
using GeneratorArguments = std::map<std::string, std::string, std::less<>>;

struct Generator {
  std::string_view name;  ///< "elasticity"
  std::string_view help;  ///< one line
  std::span<const GeneratorParameter> parameters;
  std::unique_ptr<RowSource> (*make)(const GeneratorArguments& arguments);
};

std::span<const Generator> generators();

/// True if `text` has the form NAME:… or is the bare name of a generator (so it is not a path).
bool is_generator_specification(std::string_view text);

/// The mesh file of a specification; empty if it names none.
std::string mesh_of(std::string_view specification);

/// Makes the source for "NAME" or "NAME:key=value,key=value", e.g. "elasticity:n=40,seed=1". A flag needs no value
/// ("uniform"). Throws Error(usage) with the nearest spelling for a wrong name or key, with the range for a bad value, and
/// for a missing parameter; Error(input) for a bad mesh file.
std::unique_ptr<RowSource> make_generator(std::string_view specification);

}  // namespace shardmat
