// The help that CLI11 asks for, in the form of help_text.h, and how it knows of Topic. Only program.cpp, shardmat-serve and
// options.cpp need it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace shardmat::tools {

/// The headings of Topic, in its order. CLI11's group of an option is the heading, with kRare behind it if only --help-all
/// shows the option.
constexpr std::string_view kTopics[] = {"Input", "Computation", "Output", "Machine"};
constexpr std::string_view kRare = ", rare";

/// An option as every help shows it.
struct OptionText {
  std::string names;  ///< "--type"
  std::string value;  ///< " NAME", "[=HOW]", or nothing for a flag
  std::string text;   ///< lines: description and default, then choices, and what it needs and excludes
};
OptionText text_of(const CLI::Option& option, bool is_positional);

/// All options but those that ask for help.
std::vector<const CLI::Option*> options_of(const CLI::App& app);

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace shardmat::tools
