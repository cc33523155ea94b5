// Parses the specification "NAME:key=value,…" of a generator into typed, range-checked values.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partition/generators/generator.h"

namespace shardmat {

/// Reads `arguments` by name; a missing argument has the default in `parameters`. Every function throws Error(usage) with
/// generator, key, value and the accepted range. All three inputs must outlive this object.
class Arguments {
 public:
  Arguments(std::string_view generator, std::span<const GeneratorParameter> parameters, const GeneratorArguments& arguments)
      : generator_(generator), parameters_(parameters), arguments_(arguments) {}

  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most) const;
  /// The ends of a range: "A-B" with A ≤ B, or one whole number.
  std::pair<std::int64_t, std::int64_t> range(std::string_view key, std::int64_t least, std::int64_t most) const;
  /// A number from `least` to `most`, both included.
  double real(std::string_view key, double least, double most) const;
  /// The lengths "AxBxC" along x, y and z, or F for 1x1xF; each from `least` to `most`.
  std::array<double, 3> lengths(std::string_view key, double least, double most) const;
  bool flag(std::string_view key) const;
  /// The parameter "seed", any whole number from 0.
  std::uint64_t seed() const;
  std::string choice(std::string_view key, const std::vector<std::string>& choices) const;
  std::string text(std::string_view key) const;

  /// True if the value is not the default.
  bool given(std::string_view key) const;
  /// "NAME:key=value,…" with every value that is not the default, in the order of the parameters.
  std::string specification() const;

  /// Throws Error(usage) "NAME: what".
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  std::string_view generator_;
  std::span<const GeneratorParameter> parameters_;
  const GeneratorArguments& arguments_;
};

/// The values in "key=value,key=value"; a missing key has the default in `parameters`. Throws Error(usage) for a wrong key,
/// suggesting the nearest key, and for a missing parameter without default.
GeneratorArguments parse_arguments(std::string_view generator, std::span<const GeneratorParameter> parameters,
                                   std::string_view text);

/// The text before the first colon of a specification.
inline std::string_view specified_name(std::string_view specification) {
  return specification.substr(0, specification.find(':'));
}

/// True if the text has the form NAME:… with a NAME that a generator could have.
bool has_specification_form(std::string_view text);

/// Throws Error(usage), which suggests the nearest of `names`.
[[noreturn]] void fail_generator(std::string_view name, const std::vector<std::string>& names);

/// True if the text has the form NAME:… or is the bare name of one of the list (so it is not a path).
template <class AnyGenerator>
bool is_specification(std::span<const AnyGenerator> list, std::string_view text) {
  return has_specification_form(text) ||
         std::any_of(list.begin(), list.end(), [&](const AnyGenerator& generator) { return generator.name == text; });
}

/// Calls the specified generator of the list. For a wrong name throws Error(usage), which suggests the nearest name.
template <class AnyGenerator>
auto make_specified(std::span<const AnyGenerator> list, std::string_view specification) {
  const std::string_view name = specified_name(specification);
  std::vector<std::string> names;
  for (const AnyGenerator& generator : list) {
    if (generator.name == name)
      return generator.make(parse_arguments(name, generator.parameters,
                                            specification.substr(std::min(specification.size(), name.size() + 1))));
    names.emplace_back(generator.name);
  }
  fail_generator(name, names);
}

}  // namespace shardmat
