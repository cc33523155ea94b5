// All commands of a program with what their options say, for what is made of them: the man page and the completion of
// shells.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/cli/options.h"

namespace shardmat::tools {

/// {"name", "description", "footer", "options": [{"names", "value", "text", "topic", "choices"}], "positionals": likewise,
/// "commands": the same of each subcommand}. `value` and `choices` are left out where there are none; options for tests are
/// not in it. The benchmarks come from shardmat-bench, which lies beside the program.
nlohmann::ordered_json command_tree(const CLI::App& app);

/// In the language of man, section 1.
std::string man_page(const nlohmann::ordered_json& tree);
/// For bash and for zsh.
std::string bash_completion(const nlohmann::ordered_json& tree);
std::string zsh_completion(const nlohmann::ordered_json& tree);

}  // namespace shardmat::tools
