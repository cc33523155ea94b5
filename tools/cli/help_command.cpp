// shardmat help, shardmat help COMMAND: the same as --help behind the command.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "tools/cli/command.h"
#include "tools/cli/command_tree.h"
#include "tools/cli/environment.h"
#include "tools/cli/other_programs.h"

namespace shardmat::tools {
namespace {

CLI::App& find_command(CLI::App& app, const std::string& name, const std::string& path) {
  std::vector<std::string> names;
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == name) return *sub;
    names.push_back(sub->get_name());
  }
  std::string message = fmt::format("{} has no command \"{}\"", path, name);
  if (!names.empty()) message += "; choose " + join_choices(names);
  if (const std::string near = nearest(name, names); !near.empty()) message += fmt::format(" (did you mean {}?)", near);
  throw Error(ErrorKind::usage, fmt::format("{}; see: {} --help", message, path));
}

}  // namespace

std::function<int()> add_help(const CommandLine& program) {
  const CommandLine app = program.add_subcommand("help", "Print the help of a command, as shardmat COMMAND --help does");
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("command", *words, "a command, e.g. multiply or bench kernels (default: the program)");
  const auto as = std::make_shared<std::string>();
  app.add_option(
         "--as", *as,
         "print all commands with their options in this form: a page of man, completion of bash or zsh, or what these are "
         "made of")
      .check(one_of({"man", "bash", "zsh", "json"}));
  app.footer("Examples:\n  shardmat help multiply\n  shardmat help bench kernels\n  source <(shardmat help --as bash)\n");
  return [&program = program.cli11(), words, as] {
    CLI::App* shown = &program;
    std::string path = program.get_name();
    for (const std::string& word : *words) {
      shown = &find_command(*shown, word, path);
      path += " " + word;
      if (word == "bench" && shown->get_subcommands({}).empty()) become_bench();  // which has the help of the benchmarks
    }
    if (launch().rank != 0) return 0;
    if (!as->empty()) {
      const nlohmann::ordered_json tree = command_tree(*shown);
      fmt::print("{}", *as == "man"    ? man_page(tree)
                       : *as == "bash" ? bash_completion(tree)
                       : *as == "zsh"  ? zsh_completion(tree)
                                       : tree.dump(1) + "\n");
      return 0;
    }
    fmt::print("{}", program.get_formatter()->make_help(shown, path, CLI::AppFormatMode::Normal));
    return 0;
  };
}

}  // namespace shardmat::tools
