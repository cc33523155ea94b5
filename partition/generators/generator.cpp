#include "partition/generators/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "partition/generators/families.h"

namespace shardmat {
namespace {

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? fmt::format("known: {}", join_choices(candidates)) : fmt::format("did you mean {}?", best);
}

const Generator& find_generator(std::string_view name) {
  std::vector<std::string> names;
  for (const Generator& generator : generators()) {
    if (generator.name == name) return generator;
    names.emplace_back(generator.name);
  }
  throw Error(ErrorKind::usage, fmt::format("there is no generator \"{}\"; {}", name, suggestion(name, names)));
}

const GeneratorParameter& find_parameter(const Generator& generator, std::string_view key) {
  std::vector<std::string> keys;
  for (const GeneratorParameter& parameter : generator.parameters) {
    if (parameter.name == key) return parameter;
    keys.emplace_back(parameter.name);
  }
  throw Error(ErrorKind::usage, fmt::format("{} has no parameter \"{}\"; {}", generator.name, key, suggestion(key, keys)));
}

/// Adds one "key=value" or "flag" of a specification.
void parse_argument(const Generator& generator, std::string_view item, GeneratorArguments& arguments) {
  const std::size_t equals = item.find('=');
  const std::string_view key = item.substr(0, equals);
  if (key.empty())
    throw Error(ErrorKind::usage, fmt::format("{}: \"{}\" is not of the form key=value", generator.name, item));
  const GeneratorParameter& parameter = find_parameter(generator, key);
  const bool bare = equals == std::string_view::npos;
  if (bare && parameter.default_value != "off")
    throw Error(ErrorKind::usage, fmt::format("{}: {} needs a value, as in {}=…", generator.name, key, key));
  std::string value(bare ? std::string_view("on") : item.substr(equals + 1));
  if (!arguments.emplace(key, std::move(value)).second)
    throw Error(ErrorKind::usage, fmt::format("{}: {} is given twice", generator.name, key));
}

void fill_defaults(const Generator& generator, GeneratorArguments& arguments) {
  for (const GeneratorParameter& parameter : generator.parameters) {
    if (arguments.find(parameter.name) != arguments.end()) continue;
    if (parameter.default_value.empty())
      throw Error(ErrorKind::usage, fmt::format("{}: {} is missing ({})", generator.name, parameter.name, parameter.help));
    arguments.emplace(parameter.name, parameter.default_value);
  }
}

}  // namespace

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

bool is_generator_specification(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  if (name.size() == text.size())
    return std::any_of(generators().begin(), generators().end(), [&](const Generator& g) { return g.name == name; });
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::unique_ptr<RowSource> make_generator(std::string_view specification) {
  const std::size_t colon = specification.find(':');
  const Generator& generator = find_generator(specification.substr(0, colon));
  GeneratorArguments arguments;
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : specification.substr(colon + 1);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    parse_argument(generator, rest.substr(0, comma), arguments);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  fill_defaults(generator, arguments);
  return generator.make(arguments);
}

}  // namespace shardmat
