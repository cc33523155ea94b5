// Checks of option values that need nothing but the text.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/options.h"

namespace shardmat::tools {

ValueCheck whole_number(std::int64_t min, std::int64_t max);
/// Neither NaN nor infinite.
ValueCheck finite_number();
ValueCheck positive_number();
/// A finite number, `least` or more.
ValueCheck number_from(double least);
/// Turns "5us" into a number, 0 or more, by the factors of the units, one of which must stand behind it.
ValueCheck number_with_unit(std::vector<std::pair<std::string, double>> units);
/// A file to write; an option in its place means that the name was forgotten.
ValueCheck output_name();

/// `good` says whether a text is right; `wanted` says in the message what it should be, as "a finite number".
ValueCheck value_check(std::function<bool(const std::string&)> good, const std::string& wanted);
/// What output_name() asks for.
bool is_output_name(const std::string& text);

}  // namespace shardmat::tools
