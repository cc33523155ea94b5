// Completion of bash and zsh: which commands, options and words may come next. Everything else is completed to files.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/command_tree.h"

namespace shardmat::tools {
namespace {

using Json = nlohmann::ordered_json;

/// "--rhs" and "-k" of "-k, --rhs".
std::vector<std::string> names_in(const Json& option) {
  std::vector<std::string> names{""};
  for (const char c : option["names"].get<std::string>())
    if (c == ',') names.emplace_back();
    else if (c != ' ') names.back() += c;
  return names;
}

/// Calls take(path, command) for each command; `path` is "shardmat solve".
template <class Take>
void for_each_command(const Json& command, const std::string& before, const Take& take) {
  const std::string path = before + command["name"].get<std::string>();
  take(path, command);
  for (const Json& sub : command["commands"]) for_each_command(sub, path + " ", take);
}

/// In single quotes.
std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

/// The first line of an option's text, as zsh shows it behind the name.
std::string named(const std::string& name, const std::string& text) {
  std::string escaped;
  for (const char c : name) escaped += c == ':' ? "\\:" : std::string(1, c);
  return in_quotes(escaped + ":" + text.substr(0, text.find('\n')));
}

/// case of bash and zsh: "  'shardmat solve')\n    STATEMENT ;;".
std::string branch(const std::string& pattern, const std::string& statement) {
  return fmt::format("    {}) {} ;;\n", pattern, statement);
}

/// The shell's function `find_path`: sets `path` to the command that the words before the current one name.
std::string walk(const Json& tree) {
  std::string steps;
  for_each_command(tree, "", [&](const std::string& path, const Json& command) {
    for (const Json& sub : command["commands"])
      steps += (steps.empty() ? "" : "|") + in_quotes(path + " " + sub["name"].get<std::string>());
  });
  return steps;
}

struct Branches {
  std::string words;   ///< by path: what may come next
  std::string values;  ///< by path and option: the words that it takes, or that a file follows
};

/// `list` turns words with their descriptions into statements of the shell.
template <class List>
Branches branches_of(const Json& tree, const List& list) {
  Branches all;
  for_each_command(tree, "", [&](const std::string& path, const Json& command) {
    std::vector<std::pair<std::string, std::string>> commands,
        options{{"--help", "print the common options"}, {"--help-all", "print all options"}};
    for (const Json& sub : command["commands"]) commands.emplace_back(sub["name"], sub["description"]);
    for (const Json& option : command["options"]) {
      const std::vector<std::string> names = names_in(option);
      for (const std::string& name : names) options.emplace_back(name, option["text"]);
      if (!option.contains("value")) continue;
      std::string patterns;
      for (const std::string& name : names) patterns += (patterns.empty() ? "" : "|") + in_quotes(path + " " + name);
      std::vector<std::pair<std::string, std::string>> choices;
      if (option.contains("choices"))
        for (const Json& word : option["choices"]) choices.emplace_back(word, "");
      all.values += branch(patterns, list("values", choices));
    }
    all.words += branch(in_quotes(path), list("commands", commands) + "; " + list("options", options));
  });
  return all;
}

}  // namespace

std::string bash_completion(const Json& tree) {
  const Branches all = branches_of(tree, [](const char* name, const auto& words) {
    std::string text;
    for (const auto& [word, description] : words) text += (text.empty() ? "" : " ") + word;
    return fmt::format("{}={}", name, in_quotes(text));
  });
  return fmt::format(R"(# bash completion for shardmat: made by `shardmat help --as bash`.
_shardmat() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} path=shardmat help="" i
  local commands="" options="" values=none
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$path ${{COMP_WORDS[i]}}" in
    'shardmat help') help=1 ;;
    {}) path="$path ${{COMP_WORDS[i]}}" ;;
    esac
  done
  if [[ $word = "=" ]]; then word=""; fi  # bash takes --type=f32 for three words
  if [[ $before = "=" ]]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  if [[ -n $help && "$word $before" = *-* ]]; then help="" path="shardmat help"; fi  # its own options
  case "$path $before" in
{}  esac
  case $path in
{}  esac
  COMPREPLY=()
  if [[ -n $help ]]; then mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
  elif [[ -n $values && $values != none ]]; then mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
  elif [[ -z $values ]]; then :
  elif [[ $word = -* ]]; then mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  elif [[ -n $commands ]]; then mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
  fi
}}
complete -o default -F _shardmat shardmat
)",
                     walk(tree), all.values, all.words);
}

std::string zsh_completion(const Json& tree) {
  const Branches all = branches_of(tree, [](const char* name, const auto& words) {
    std::string text;
    for (const auto& [word, description] : words)
      text += " " + (description.empty() ? in_quotes(word) : named(word, description));
    return fmt::format("{}=({})", name, text.empty() ? text : text.substr(1));
  });
  return fmt::format(R"(#compdef shardmat
# zsh completion for shardmat: made by `shardmat help --as zsh`.
_shardmat() {{
  local word=$words[CURRENT] before=$words[CURRENT-1] way=shardmat help="" i
  local -a commands options values
  for ((i = 2; i < CURRENT; ++i)); do
    case "$way $words[i]" in
    'shardmat help') help=1 ;;
    {}) way="$way $words[i]" ;;
    esac
  done
  local takes_value=1
  if [[ $word = --*=* ]]; then before=${{word%%=*}}; compset -P '*='; fi
  if [[ -n $help && "$word $before" = *-* ]]; then help="" way="shardmat help"; fi
  case "$way $before" in
{}    *) takes_value="" ;;
  esac
  case $way in
{}  esac
  if [[ -n $help ]]; then _describe command commands
  elif (( $#values )); then _describe value values
  elif [[ -n $takes_value ]]; then _files
  elif [[ $word = -* ]]; then _describe -o option options
  elif (( $#commands )); then _describe command commands
  else _files
  fi
}}
_shardmat "$@"
)",
                     walk(tree), all.values, all.words);
}

}  // namespace shardmat::tools
