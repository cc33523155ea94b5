#include "tools/cli/help_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "tools/cli/help_formatter.h"

namespace shardmat::tools {
namespace {

constexpr std::size_t kUsualWidth = 80, kLeastWidth = 40, kWidestNames = 28;
/// --help shows all options of a command that has no more.
constexpr std::size_t kFewOptions = 15;

/// Characters, not bytes.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::size_t end = 0;
  for (std::size_t at = text.find_first_not_of(' '); at != std::string_view::npos; at = text.find_first_not_of(' ', end)) {
    end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
  }
  return words;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// Words behind `start`, which is on the first line; later lines begin at column `indent`. `mark` ends lines that go on.
std::string filled(std::string start, const std::vector<std::string>& words, std::size_t indent, std::size_t width,
                   std::string_view mark = "") {
  std::string text, line = std::move(start);
  bool empty = true;  // of words
  for (const std::string& word : words) {
    const std::size_t gap = empty ? 0 : 1;
    if (!empty && length_of(line) + gap + length_of(word) + mark.size() > width) {
      text.append(line).append(mark).append("\n");
      line = std::string(indent, ' ');
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return text + line;
}

bool is_command(std::string_view text) { return text.rfind("shardmat ", 0) == 0 || text.rfind("mpirun ", 0) == 0; }

std::string wrapped_command(std::size_t indent, std::string_view command, std::size_t width) {
  std::string text;
  if (const std::size_t comment = command.find(" # "); comment != std::string_view::npos) {
    text = filled(std::string(indent, ' '), words_of(command.substr(comment)), indent + 2, width) + "\n";
    command = command.substr(0, comment);
  }
  std::vector<std::string> words;
  for (const std::string& word : words_of(command))  // an option stays with its value
    if (!words.empty() && words.back().rfind("--", 0) == 0 && words.back().find(' ') == std::string::npos && word[0] != '-')
      words.back() += " " + word;
    else words.push_back(word);
  return text + filled(std::string(indent, ' '), words, indent + 4, width, " \\");
}

std::string wrapped_line(std::string_view line, std::size_t width) {
  if (length_of(line) <= width) return std::string(line);
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string_view text = line.substr(indent);
  if (is_command(text)) return wrapped_command(indent, text, width);
  const std::size_t gap = text.find("  ");
  if (indent == 0 || gap == std::string_view::npos) return filled(std::string(indent, ' '), words_of(text), indent, width);
  const std::size_t second = text.find_first_not_of(' ', gap);
  const std::string_view start = line.substr(0, indent + second);
  const std::size_t column = length_of(start);
  return filled(std::string(start), words_of(text.substr(second)), 2 * column < width ? column : indent + 2, width);
}

/// Names to the left, text to the right of a column that all rows share, under the names where those are too long.
std::string row(const std::string& names, const std::string& text) {
  const std::size_t width = help_width(), column = std::min(kWidestNames, 3 * width / 10);
  std::string result = names, start;
  if (text.empty()) return result + "\n";
  if (length_of(names) + 2 > column) {
    result += "\n";
    start = std::string(column, ' ');
  } else {
    start = names + std::string(column - length_of(names), ' ');
    result.clear();
  }
  for (const std::string_view line : lines_of(text)) {
    result += filled(start, words_of(line), column, width) + "\n";
    start = std::string(column, ' ');
  }
  return result;
}

/// "--json, --also" without what CLI11 adds to the names of flags.
std::string names_of_option(const CLI::Option& option, bool is_positional) {
  if (is_positional) return option.get_name(true, false);
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  return names;
}

/// What CLI11 puts between braces for CLI::IsMember.
std::string members(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  std::string list;
  for (const char c : type.substr(begin + 1, end - begin - 1)) list += c == ',' ? ", " : std::string(1, c);
  return list;
}

/// The word for a value in the place of CLI11's types.
std::string value_name(const CLI::Option& option) {
  if (!option.get_option_text().empty())  // "[=HOW]" belongs to the name
    return (option.get_option_text().rfind("[=", 0) == 0 ? "" : " ") + option.get_option_text();
  if (option.get_type_size() == 0) return {};
  static const std::map<std::string, std::string> words{{"TEXT", "NAME"}, {"INT", "N"}, {"UINT", "N"}, {"FLOAT", "X"}};
  std::string type = option.get_type_name();
  type = type.substr(0, type.find(':'));
  if (const auto word = words.find(type); word != words.end()) type = word->second;
  if (type.empty()) return {};
  return " " + type + (option.get_expected_max() >= CLI::detail::expected_max_vector_size ? ",…" : "");
}

std::string default_of(const CLI::Option& option) {
  std::string text = option.get_default_str();
  if (text.size() > 1 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  return option.get_type_size() == 0 || !option.get_option_text().empty() || text.empty() ? "" : " (default " + text + ")";
}

std::string list_of(const std::set<CLI::Option*>& options) {
  std::string list;
  for (const CLI::Option* other : options)
    list += (list.empty() ? "" : ", ") + names_of_option(*other, other->get_positional());
  return list;
}

}  // namespace

std::size_t help_width() {
  std::size_t width = 0;
  if (const char* columns = std::getenv("COLUMNS")) std::from_chars(columns, columns + std::strlen(columns), width);
  winsize size{};
  if (width == 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return width == 0 ? kUsualWidth : std::max(width, kLeastWidth);
}

std::string wrapped(std::string_view text, std::size_t width) {
  std::string result;
  for (const std::string_view line : lines_of(text)) result += wrapped_line(line, width) + "\n";
  result.pop_back();
  return result;
}

std::string choices(std::string_view title, const std::vector<std::string>& names) {
  return fmt::format("\n{}: {}", title, fmt::join(names, ", "));
}

OptionText text_of(const CLI::Option& option, bool is_positional) {
  std::string text = option.get_description();
  text.insert(std::min(text.find('\n'), text.size()), default_of(option));
  if (const std::string list = members(option); !list.empty()) text += "\nChoices: " + list;
  if (!option.get_needs().empty()) text += "\nNeeds: " + list_of(option.get_needs());
  if (!option.get_excludes().empty()) text += "\nNot with: " + list_of(option.get_excludes());
  return {names_of_option(option, is_positional), is_positional ? "" : value_name(option), text};
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([&app](const CLI::Option* option) {
    return option->nonpositional() && option != app.get_help_ptr() && option != app.get_help_all_ptr();
  });
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  const std::vector<const CLI::Option*> options = options_of(*app);
  const bool common_only = mode != CLI::AppFormatMode::All && options.size() > kFewOptions;
  std::string text = make_description(app) + make_usage(app, std::move(name)) + make_positionals(app);
  std::vector<std::string> headings{"Options"};  // of options without a topic
  headings.insert(headings.end(), std::begin(kTopics), std::end(kTopics));
  for (const std::string& heading : headings) {
    std::vector<const CLI::Option*> here = options;
    std::erase_if(here, [&](const CLI::Option* option) {
      const std::string& group = option->get_group();
      return group != heading && (common_only || group != heading + std::string(kRare));
    });
    if (!here.empty()) text += make_group(heading, false, here);
  }
  text += make_subcommands(app, CLI::AppFormatMode::Normal) + "\n" + make_footer(app);
  return common_only ? text + fmt::format("\n--help-all lists all {} options.\n", options.size()) : text;
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  const OptionText shown = text_of(*option, is_positional);
  return row("  " + shown.names + shown.value, shown.text);
}

std::string HelpFormatter::make_subcommand(const CLI::App* sub) const {
  return row("  " + sub->get_name(), sub->get_description());
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(app->get_description(), help_width()) + "\n";
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  const std::string text = app->get_footer();
  const std::size_t begin = text.find_first_not_of('\n'), end = text.find_last_not_of('\n');
  return begin == std::string::npos ? "" : wrapped(text.substr(begin, end + 1 - begin), help_width()) + "\n";
}

}  // namespace shardmat::tools
