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

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? fmt::format("known: {}", join_choices(candidates)) : fmt::format("did you mean {}?", best);
}

const GeneratorParameter& find_parameter(std::string_view generator, std::span<const GeneratorParameter> parameters,
                                         std::string_view key) {
  std::vector<std::string> keys;
  for (const GeneratorParameter& parameter : parameters) {
    if (parameter.name == key) return parameter;
    keys.emplace_back(parameter.name);
  }
  throw Error(ErrorKind::usage, fmt::format("{} has no parameter \"{}\"; {}", generator, key, suggestion(key, keys)));
}

/// Adds one "key=value" or "flag" of a specification.
void parse_argument(std::string_view generator, std::span<const GeneratorParameter> parameters, std::string_view item,
                    GeneratorArguments& arguments) {
  const std::size_t equals = item.find('=');
  const std::string_view key = item.substr(0, equals);
  if (key.empty()) throw Error(ErrorKind::usage, fmt::format("{}: \"{}\" is not of the form key=value", generator, item));
  const GeneratorParameter& parameter = find_parameter(generator, parameters, key);
  const bool bare = equals == std::string_view::npos;
  if (bare && parameter.default_value != "off")
    throw Error(ErrorKind::usage, fmt::format("{}: {} needs a value, as in {}=…", generator, key, key));
  std::string value(bare ? std::string_view("on") : item.substr(equals + 1));
  if (!arguments.emplace(key, std::move(value)).second)
    throw Error(ErrorKind::usage, fmt::format("{}: {} is given twice", generator, key));
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

std::pair<std::int64_t, std::int64_t> Arguments::range(std::string_view key, std::int64_t least, std::int64_t most) const {
  const std::string value = text(key);
  const std::size_t dash = value.find('-', 1);
  std::pair<std::int64_t, std::int64_t> ends;
  const bool good = parse_all(value.substr(0, dash), ends.first) &&
                    parse_all(dash == std::string::npos ? value : value.substr(dash + 1), ends.second);
  if (!good || ends.first < least || ends.first > ends.second || ends.second > most)
    refuse(fmt::format("{} must be a whole number or a range A-B from {} to {}, not \"{}\"", key, least, most, value));
  return ends;
}

double Arguments::real(std::string_view key, double least, double most) const {
  const std::string value = text(key);
  double result = 0;
  if (!parse_all(value, result) || !(result >= least && result <= most))
    refuse(fmt::format("{} must be a number from {} to {}, not \"{}\"", key, least, most, value));
  return result;
}

std::array<double, 3> Arguments::lengths(std::string_view key, double least, double most) const {
  const std::string value = text(key);
  std::array<double, 3> result{1, 1, 1};
  std::size_t begin = 0, count = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1, ++count) {
    end = value.find('x', begin);
    const std::size_t d = value.find('x') == std::string::npos ? 2 : count;
    if (d > 2 || !parse_all(value.substr(begin, end - begin), result[d]) || !(result[d] >= least && result[d] <= most)) {
      count = 0;
      break;
    }
  }
  if (count != 1 && count != 3)
    refuse(fmt::format("{} must be a number F or three numbers AxBxC, each from {} to {}, not \"{}\"", key, least, most,
                       value));
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

GeneratorArguments parse_arguments(std::string_view generator, std::span<const GeneratorParameter> parameters,
                                   std::string_view text) {
  GeneratorArguments arguments;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    parse_argument(generator, parameters, text.substr(0, comma), arguments);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  for (const GeneratorParameter& parameter : parameters) {
    if (arguments.find(parameter.name) != arguments.end()) continue;
    if (parameter.default_value.empty())
      throw Error(ErrorKind::usage, fmt::format("{}: {} is missing ({})", generator, parameter.name, parameter.help));
    arguments.emplace(parameter.name, parameter.default_value);
  }
  return arguments;
}

bool has_specification_form(std::string_view text) {
  const std::string_view name = specified_name(text);
  return name.size() < text.size() && !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

void fail_generator(std::string_view name, const std::vector<std::string>& names) {
  throw Error(ErrorKind::usage, fmt::format("there is no generator \"{}\"; {}", name, suggestion(name, names)));
}

}  // namespace shardmat
