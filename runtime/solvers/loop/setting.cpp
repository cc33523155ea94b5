#include "runtime/solvers/loop/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat {

bool SolverSetting::is_used(const SolverOptions& options) const {
  const std::string& chosen = of == "solver" ? options.solver : options.preconditioner;
  return users.empty() || std::find(users.begin(), users.end(), chosen) != users.end();
}

namespace settings {
namespace {

template <class T>
std::optional<T> value_in(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
const T& value_of(const Variable<T>& in, const SolverOptions& options) {
  return in(const_cast<SolverOptions&>(options));  // which a variable only finds
}

SolverSetting number_where(std::string name, std::string help, std::string values, bool (*takes)(double value, double least),
                           double least, Variable<double> in) {
  SolverSetting s{std::move(name), std::move(help), std::move(values)};
  s.get = [in](const SolverOptions& o) { return fmt::format("{}", value_of(in, o)); };
  s.set = [in, takes, least, name = s.name, values = s.values](SolverOptions& o, const std::string& text) {
    const std::optional<double> value = value_in<double>(text);
    if (!value || !takes(*value, least)) refuse(name, values, text);
    in(o) = *value;
  };
  return s;
}

template <class T>
SolverSetting count_in(std::string name, std::string help, std::int64_t least, std::int64_t most, Variable<T> in) {
  const bool endless = most == std::numeric_limits<std::int64_t>::max();
  SolverSetting s{std::move(name), std::move(help),
                  endless ? fmt::format("a whole number of {} or more", least)
                          : fmt::format("a whole number from {} to {}", least, most)};
  s.whole = true;
  s.get = [in](const SolverOptions& o) { return fmt::format("{}", value_of(in, o)); };
  s.set = [in, least, most, name = s.name, values = s.values](SolverOptions& o, const std::string& text) {
    const std::optional<std::int64_t> value = value_in<std::int64_t>(text);
    if (!value || *value < least || *value > most) refuse(name, values, text);
    in(o) = static_cast<T>(*value);
  };
  return s;
}

std::vector<SolverSetting> used_by(std::vector<SolverSetting> settings, const std::string& of,
                                   const std::vector<std::string>& users) {
  for (SolverSetting& setting : settings) setting.of = of, setting.users = users;
  return settings;
}

}  // namespace

void refuse(const std::string& name, const std::string& values, const std::string& given) {
  throw Error(ErrorKind::usage, fmt::format("{} must be {}, not \"{}\"", name, values, given), name);
}

SolverSetting word(std::string name, std::string help, std::vector<std::string> choices,
                   std::function<std::string(const SolverOptions&)> get,
                   std::function<void(SolverOptions&, const std::string&)> parse) {
  SolverSetting s{std::move(name), std::move(help), join_choices(choices), std::move(choices)};
  s.get = std::move(get);
  s.set = std::move(parse);
  return s;
}

SolverSetting word(std::string name, std::string help, std::vector<std::string> choices, Variable<std::string> in) {
  const auto parse = [in, choices, name](SolverOptions& o, const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) refuse(name, join_choices(choices), text);
    in(o) = text;
  };
  const auto get = [in](const SolverOptions& o) { return value_of(in, o); };
  return word(std::move(name), std::move(help), std::move(choices), get, parse);
}

SolverSetting number(std::string name, std::string help, double least, Variable<double> in) {
  const auto takes = [](double value, double from) { return value >= from && !std::isinf(value); };
  return number_where(std::move(name), std::move(help), fmt::format("{:g} or more", least), takes, least, std::move(in));
}

SolverSetting number_above(std::string name, std::string help, double least, Variable<double> in) {
  const auto takes = [](double value, double from) { return value > from; };
  return number_where(std::move(name), std::move(help), fmt::format("above {:g}", least), takes, least, std::move(in));
}

SolverSetting count(std::string name, std::string help, std::int64_t least, std::int64_t most, Variable<int> in) {
  return count_in(std::move(name), std::move(help), least, most, std::move(in));
}

SolverSetting count(std::string name, std::string help, std::int64_t least, std::int64_t most, Variable<std::int64_t> in) {
  return count_in(std::move(name), std::move(help), least, most, std::move(in));
}

SolverSetting flag(std::string name, std::string help, Variable<bool> in) {
  SolverSetting s{std::move(name), std::move(help), "0 or 1"};
  s.flag = true;
  s.get = [in](const SolverOptions& o) { return value_of(in, o) ? "1" : "0"; };
  s.set = [in, name = s.name, values = s.values](SolverOptions& o, const std::string& text) {
    const bool yes = text == "1" || text == "true" || text == "True";
    if (!yes && text != "0" && text != "false" && text != "False") refuse(name, values, text);
    in(o) = yes;
  };
  return s;
}

SolverSetting digits(std::string name, std::string help, Variable<std::string> in) {
  SolverSetting s{std::move(name), std::move(help), "auto, or digits 0 and 1, as 001"};
  s.text = true;
  s.get = [in](const SolverOptions& o) { return value_of(in, o); };
  s.set = [in, name = s.name, values = s.values](SolverOptions& o, const std::string& text) {
    const bool good = text.find_first_not_of("01") == std::string::npos && text.find('0') != std::string::npos &&
                      text.find('1') != std::string::npos;
    if (text != "auto" && !good) refuse(name, values, text);
    in(o) = text;
  };
  return s;
}

std::vector<SolverSetting> of_solvers(const std::vector<std::string>& users, std::vector<SolverSetting> settings) {
  return used_by(std::move(settings), "solver", users);
}

std::vector<SolverSetting> of_preconditioners(const std::vector<std::string>& users, std::vector<SolverSetting> settings) {
  return used_by(std::move(settings), "preconditioner", users);
}

}  // namespace settings
}  // namespace shardmat
