#include "tools/cli/setting_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardmat::tools {
namespace {

/// The settings whose options are called otherwise: "allow_nonfinite" needs no line, it is --allow-nonfinite. What stands
/// behind an option is what to type for it.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"order", "--reorder"},
    {"placement", "--batch"},
    {"right_hand_sides", "--rhs"},
    {"tune", "--measure"},
    {"timeout_seconds", "--timeout"},
    {"verify_mode", "--verify"},
    {"triplets", "--input-format triplets --base 1"},
};

}  // namespace

std::string option_of(std::string_view setting) {
  for (const auto& [name, option] : kOtherNames)
    if (name == setting) return std::string(option);
  if (const std::size_t equals = setting.find('='); equals != std::string_view::npos)
    return fmt::format("{} {}", option_of(setting.substr(0, equals)), setting.substr(equals + 1));
  std::string option = fmt::format("--{}", setting);
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

std::string message_of(const Error& error, const CommandLine& command) {
  const std::string option = option_of(error.setting());
  if (error.setting().empty() || !command.has_option(option.substr(0, option.find(' ')))) return error.what();
  return fmt::format("{} ({})", error.what(), option);
}

}  // namespace shardmat::tools
