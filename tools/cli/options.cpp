#include "tools/cli/options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <utility>

#include "tools/cli/help_formatter.h"

namespace shardmat::tools {

ValueCheck::ValueCheck(std::function<std::string(std::string&)> check) : ValueCheck(CLI::Validator(std::move(check), "")) {}

ValueCheck::ValueCheck(CLI::Validator validator)
    : validator_(std::make_shared<const CLI::Validator>(std::move(validator))) {}

ValueCheck one_of(std::vector<std::string> words) { return ValueCheck(CLI::IsMember(std::move(words))); }

ValueCheck bytes_with_unit() { return ValueCheck(CLI::AsSizeValue(true)); }

Option Option::common() const {
  std::string group = option_->get_group();
  if (group.ends_with(kRare)) group.resize(group.size() - kRare.size());
  return Option(option_->group(group));
}
Option Option::required(bool yes) const { return Option(option_->required(yes)); }
Option Option::check(const ValueCheck& check) const { return Option(option_->check(check.cli11())); }
Option Option::transform(const ValueCheck& check) const { return Option(option_->transform(check.cli11())); }
Option Option::capture_default_str() const { return Option(option_->capture_default_str()); }
Option Option::delimiter(char separator) const { return Option(option_->delimiter(separator)); }
Option Option::allow_extra_args(bool yes) const { return Option(option_->allow_extra_args(yes)); }
Option Option::type_name(const std::string& name) const { return Option(option_->type_name(name)); }
Option Option::option_text(const std::string& text) const { return Option(option_->option_text(text)); }
Option Option::optional_value(const std::string& otherwise) const {
  return Option(option_->expected(0, 1)->default_str(otherwise));
}
Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }
Option Option::excludes(const std::string& other) const { return Option(option_->excludes(other)); }
Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }

CommandLine CommandLine::add_subcommand(const std::string& name, const std::string& help) const {
  return CommandLine(*app_->add_subcommand(name, help));
}

CommandLine CommandLine::in(Topic topic) const {
  CommandLine there = *this;
  there.topic_ = topic;
  return there;
}

Option CommandLine::placed(CLI::Option* option) const {
  if (topic_) option->group(std::string(kTopics[static_cast<std::size_t>(*topic_)]).append(kRare));
  return Option(option);
}

template <class T>
Option CommandLine::add_option(const std::string& names, T& value, const std::string& help) const {
  return placed(app_->add_option(names, value, help));
}
template <class T>
Option CommandLine::add_flag(const std::string& names, T& value, const std::string& help) const {
  return placed(app_->add_flag(names, value, help));
}
#define SHARDMAT_OPTION(...) \
  template Option CommandLine::add_option(const std::string& names, __VA_ARGS__& value, const std::string& help) const;
#define SHARDMAT_FLAG(...) \
  template Option CommandLine::add_flag(const std::string& names, __VA_ARGS__& value, const std::string& help) const;
SHARDMAT_OPTION(int)
SHARDMAT_OPTION(std::int64_t)
SHARDMAT_OPTION(std::uint64_t)
SHARDMAT_OPTION(double)
SHARDMAT_OPTION(std::optional<double>)
SHARDMAT_OPTION(std::string)
SHARDMAT_OPTION(std::vector<int>)
SHARDMAT_OPTION(std::vector<std::int64_t>)
SHARDMAT_OPTION(std::vector<std::string>)
SHARDMAT_FLAG(bool)
SHARDMAT_FLAG(std::string)
#undef SHARDMAT_OPTION
#undef SHARDMAT_FLAG

Option CommandLine::add_option_function(const std::string& names, const std::function<void(const std::string&)>& take,
                                        const std::string& help) const {
  return placed(app_->add_option_function<std::string>(names, take, help));
}
Option CommandLine::add_flag_callback(const std::string& names, const std::function<void()>& given,
                                      const std::string& help) const {
  return placed(app_->add_flag_callback(names, given, help));
}
void CommandLine::footer(const std::string& text) const { app_->footer(text); }
void CommandLine::when_met(const std::function<void()>& met) const {
  app_->preparse_callback([met](std::size_t) { met(); });
}
void CommandLine::require_subcommand() const { app_->require_subcommand(1); }

std::vector<CommandLine> CommandLine::subcommands() const {
  std::vector<CommandLine> all;
  for (CLI::App* sub : app_->get_subcommands([](CLI::App*) { return true; })) all.emplace_back(*sub);
  return all;
}
bool CommandLine::parsed() const { return app_->parsed(); }
bool CommandLine::has_option(const std::string& name) const { return app_->get_option_no_throw(name) != nullptr; }
std::size_t CommandLine::count(const std::string& name) const { return app_->count(name); }

void refuse_value(const std::string& option, const std::string& why) { throw CLI::ValidationError(option, why); }

}  // namespace shardmat::tools
