// The arguments of one generator as typed, range-checked values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partition/generators/generator.h"

namespace shardmat {

/// Reads `arguments` by name, taking the default of `parameters` where one is absent. Every reader throws
/// Error(usage) naming generator, key, value and the accepted range. All three inputs must outlive this
/// object.
class Arguments {
 public:
  Arguments(std::string_view generator, std::span<const GeneratorParameter> parameters, const GeneratorArguments& arguments)
      : generator_(generator), parameters_(parameters), arguments_(arguments) {}

  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most) const;
  /// Least and most are both accepted.
  double real(std::string_view key, double least, double most) const;
  bool flag(std::string_view key) const;
  /// The parameter "seed", any whole number from 0.
  std::uint64_t seed() const;
  std::string choice(std::string_view key, const std::vector<std::string>& choices) const;
  std::string text(std::string_view key) const;

  /// True if the value is not the default.
  bool given(std::string_view key) const;
  /// "NAME:key=value,…" with every value that is not the default, in the order of the parameters.
  std::string specification() const;

  /// Error(usage) "NAME: what".
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  std::string_view generator_;
  std::span<const GeneratorParameter> parameters_;
  const GeneratorArguments& arguments_;
};

}  // namespace shardmat
