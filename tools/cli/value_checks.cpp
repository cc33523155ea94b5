#include "tools/cli/value_checks.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/text.h"

namespace shardmat::tools {
namespace {

template <class T>
std::optional<T> parse(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// A finite number that fulfils `more`.
template <class F>
ValueCheck number_check(F&& more, const std::string& wanted) {
  return value_check(
      [more](const std::string& text) {
        const auto value = parse<double>(text);
        return value && std::isfinite(*value) && more(*value);
      },
      wanted);
}

}  // namespace

// CLI11 wants the text of the error, empty for none.
ValueCheck value_check(std::function<bool(const std::string&)> good, const std::string& wanted) {
  return ValueCheck([good = std::move(good), wanted](std::string& text) {
    return good(text) ? std::string() : fmt::format("it must be {}, not \"{}\"", wanted, text);
  });
}

bool is_output_name(const std::string& text) { return !text.empty() && text.rfind("--", 0) != 0; }

ValueCheck whole_number(std::int64_t min, std::int64_t max) {
  return value_check(
      [=](const std::string& text) {
        const auto value = parse<std::int64_t>(text);
        return value && *value >= min && *value <= max;
      },
      fmt::format("a whole number from {} to {}", min, max));
}

ValueCheck finite_number() {
  return number_check([](double) { return true; }, "a finite number");
}

ValueCheck positive_number() {
  return number_check([](double value) { return value > 0; }, "a number greater than 0");
}

ValueCheck number_from(double least) {
  return number_check([=](double value) { return value >= least; }, fmt::format("a number from {:g} on", least));
}

ValueCheck number_with_unit(std::vector<std::pair<std::string, double>> units) {
  return ValueCheck([units = std::move(units)](std::string& text) {
    double number = -1;
    const char* const end = text.data() + text.size();
    const auto [behind, error] = std::from_chars(text.data(), end, number);
    const std::string_view unit(behind, static_cast<std::size_t>(end - behind));
    std::vector<std::string> names;
    for (const auto& [name, factor] : units) {
      if (error == std::errc() && unit == name && std::isfinite(number) && number >= 0) {
        text = fmt::format("{}", number * factor);
        return std::string();
      }
      names.push_back(name);
    }
    return fmt::format("it must be a number, 0 or more, with its unit ({}) behind it, not \"{}\"", join_choices(names),
                       text);
  });
}

ValueCheck output_name() { return value_check(is_output_name, "the name of a file"); }

}  // namespace shardmat::tools
