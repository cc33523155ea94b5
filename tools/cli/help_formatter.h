// The help that CLI11 asks for, in the form of help_text.h, and how it knows of Topic. Only program.cpp, shardmat-serve and
// options.cpp need it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace shardmat::tools {

/// The headings of Topic, in its order. CLI11's group of an option is the heading, with kRare behind it if only --help-all
/// shows the option.
constexpr std::string_view kTopics[] = {"Input", "Computation", "Output", "Machine"};
constexpr std::string_view kRare = ", rare";

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace shardmat::tools
