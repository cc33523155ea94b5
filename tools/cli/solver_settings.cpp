#include "tools/cli/solver_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "runtime/solvers/method_choice.h"
#include "tools/cli/help_text.h"
#include "tools/cli/setting_options.h"

namespace shardmat::tools {
namespace {

/// Those that --help shows without --help-all.
constexpr std::string_view kCommon[] = {"solver", "preconditioner", "rtol", "max_iterations"};

std::string help_of(const SolverSetting& setting) {
  std::string users;
  for (const std::string& user : setting.users)
    if (user != kAutomaticMethod) users += (users.empty() ? "" : ", ") + user;
  if (!users.empty()) users = (setting.of == "solver" ? "" : setting.of + " ") + users + ": ";
  if (setting.name == "near_null_space")
    return users + setting.help + choices("Choices", setting.choices) +
           ". Or file:NAME, vectors of your own: a row for each row of the matrix and 1 to 12 columns, in a file that --b "
           "takes (dataset /near_null_vectors)";
  return users + setting.help + (setting.choices.empty() ? "" : choices("Choices", setting.choices));
}

ValueCheck check_of(const SolverSetting& setting) {
  return ValueCheck([&setting](std::string& text) -> std::string {
    SolverOptions scratch;
    try {
      setting.set(scratch, text);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  });
}

}  // namespace

SolverSettingOptions::SolverSettingOptions(const CommandLine& command)
    : command_(command.in(Topic::computation)),
      texts_(std::make_shared<std::map<std::string, std::string>>()),
      flags_(std::make_shared<std::map<std::string, bool>>()) {
  const SolverOptions defaults;
  for (const SolverSetting& setting : solver_settings()) {
    const std::string name = option_of(setting.name);
    if (setting.name == "node_block_size") continue;  // the command has it for the matrix
    if (setting.flag) {
      command_.add_flag(name, (*flags_)[setting.name], help_of(setting));
      continue;
    }
    std::string& text = (*texts_)[setting.name] = setting.unset.empty() ? setting.get(defaults) : "";
    const Option option = command_.add_option(name, text, help_of(setting))->check(check_of(setting));
    if (setting.unset.empty()) option.capture_default_str();
    if (std::find(std::begin(kCommon), std::end(kCommon), setting.name) != std::end(kCommon)) option.common();
    option.type_name(setting.whole ? "N" : setting.choices.empty() && !setting.text ? "X" : "NAME");
  }
}

void SolverSettingOptions::take(SolverOptions& options) const {
  const auto given = [&](const SolverSetting& setting) {
    return (texts_->count(setting.name) + flags_->count(setting.name)) > 0 && command_.count(option_of(setting.name)) > 0;
  };
  std::vector<const SolverSetting*> taken;
  for (const SolverSetting& setting : solver_settings()) {
    if (!given(setting)) continue;
    setting.set(options, setting.flag ? "1" : texts_->at(setting.name));
    taken.push_back(&setting);
  }
  require_used(taken, options);
}

}  // namespace shardmat::tools
