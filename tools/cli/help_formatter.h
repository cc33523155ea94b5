// The help that CLI11 asks for, in the form of help_text.h. Only program.cpp needs it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace shardmat::tools {

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace shardmat::tools
