#include "partition/generators/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

template <class T>
bool parse_all(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

}  // namespace

std::string Arguments::text(std::string_view key) const {
  const auto found = arguments_.find(key);
  if (found != arguments_.end()) return found->second;
  for (const GeneratorParameter& parameter : parameters_)
    if (parameter.name == key) return std::string(parameter.default_value);
  throw Error(ErrorKind::internal, fmt::format("generator {} has no parameter {}", generator_, key));
}

std::int64_t Arguments::integer(std::string_view key, std::int64_t least, std::int64_t most) const {
  const std::string value = text(key);
  std::int64_t result = 0;
  if (!parse_all(value, result) || result < least || result > most)
    refuse(fmt::format("{} must be a whole number from {} to {}, not \"{}\"", key, least, most, value));
  return result;
}

double Arguments::real(std::string_view key, double least, double most) const {
  const std::string value = text(key);
  double result = 0;
  if (!parse_all(value, result) || !(result >= least && result <= most))
    refuse(fmt::format("{} must be a number from {} to {}, not \"{}\"", key, least, most, value));
  return result;
}

std::uint64_t Arguments::seed() const {
  return static_cast<std::uint64_t>(integer("seed", 0, std::numeric_limits<std::int64_t>::max()));
}

bool Arguments::flag(std::string_view key) const { return choice(key, {"on", "off"}) == "on"; }

std::string Arguments::choice(std::string_view key, const std::vector<std::string>& choices) const {
  const std::string value = text(key);
  if (std::find(choices.begin(), choices.end(), value) == choices.end())
    refuse(fmt::format("{} must be {}, not \"{}\"", key, join_choices(choices), value));
  return value;
}

bool Arguments::given(std::string_view key) const {
  return std::any_of(parameters_.begin(), parameters_.end(), [&](const GeneratorParameter& parameter) {
    return parameter.name == key && text(key) != parameter.default_value;
  });
}

std::string Arguments::specification() const {
  std::string result(generator_);
  char separator = ':';
  for (const GeneratorParameter& parameter : parameters_) {
    if (!given(parameter.name)) continue;
    result += fmt::format("{}{}={}", separator, parameter.name, text(parameter.name));
    separator = ',';
  }
  return result;
}

void Arguments::refuse(const std::string& what) const {
  throw Error(ErrorKind::usage, fmt::format("{}: {}", generator_, what));
}

}  // namespace shardmat
