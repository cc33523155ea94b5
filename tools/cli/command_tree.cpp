#include "tools/cli/command_tree.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "tools/cli/help_formatter.h"

namespace shardmat::tools {
namespace {

using Json = nlohmann::ordered_json;

/// What `shardmat help bench --as json` prints: this program, which then becomes the other.
Json tree_of_bench() {
  std::string text;
  std::FILE* const pipe = ::popen("/proc/$PPID/exe help bench --as json", "r");
  if (pipe == nullptr) throw Error(ErrorKind::resources, "no process can be started for shardmat-bench");
  for (char part[4096]; const std::size_t got = std::fread(part, 1, sizeof part, pipe);) text.append(part, got);
  if (const int status = ::pclose(pipe); !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(ErrorKind::resources, "shardmat-bench does not say what it can do; see above");
  return Json::parse(text);
}

/// Of the lines "Choices: a, b" and "Choices on the host: a, b", each word once.
Json choices_in(const std::string& text) {
  Json words = Json::array();
  for (std::size_t at = text.find("\nChoices"); at != std::string::npos; at = text.find("\nChoices", at + 1)) {
    const std::size_t end = std::min(text.find('\n', at + 1), text.size());
    for (std::size_t from = text.find(": ", at) + 2; from < end;) {
      const std::size_t comma = std::min(text.find(", ", from), end);
      if (const std::string word = text.substr(from, comma - from);
          std::find(words.begin(), words.end(), word) == words.end())
        words.push_back(word);
      from = comma + 2;
    }
  }
  return words;
}

Json tree_of(const CLI::Option& option, bool is_positional) {
  const OptionText shown = text_of(option, is_positional);
  std::string topic = option.get_group();
  if (topic.ends_with(kRare)) topic.resize(topic.size() - kRare.size());
  Json tree{{"names", shown.names}};
  if (!shown.value.empty()) tree["value"] = shown.value;
  tree["text"] = shown.text;
  if (!is_positional) tree["topic"] = topic;
  if (Json words = choices_in(shown.text); !words.empty()) tree["choices"] = std::move(words);
  return tree;
}

}  // namespace

Json command_tree(const CLI::App& app) {
  Json options = Json::array(), positionals = Json::array(), commands = Json::array();
  for (const CLI::Option* option : options_of(app))
    if (!option->get_group().empty()) options.push_back(tree_of(*option, false));
  for (const CLI::Option* option : app.get_options([](const CLI::Option* one) { return one->get_positional(); }))
    positionals.push_back(tree_of(*option, true));
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(sub->get_name() == "bench" && sub->get_subcommands([](const CLI::App*) { return true; }).empty()
                           ? tree_of_bench()
                           : command_tree(*sub));
  return {{"name", app.get_name()}, {"description", app.get_description()}, {"footer", app.get_footer()},
          {"options", options},     {"positionals", positionals},           {"commands", commands}};
}

}  // namespace shardmat::tools
