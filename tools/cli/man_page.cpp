// A section for each command, with all its options.
#include <fmt/format.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/cli/command_tree.h"
#include "tools/cli/version.h"

namespace shardmat::tools {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kLongestTitle = 40;
constexpr std::string_view kExitCodes = "Exit codes: ";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines{""};
  for (const char c : text)
    if (c == '\n') lines.emplace_back();
    else lines.back() += c;
  return lines;
}

/// Text that man takes as it is, also at the start of a line.
std::string plain(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (escaped.empty() && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') escaped += "\\e";
    else if (c == '-') escaped += "\\-";
    else escaped += c;
  }
  return escaped;
}

std::string paragraphs(const std::string& text) {
  std::string page;
  for (const std::string& line : lines_of(text)) page += (page.empty() ? "" : ".br\n") + plain(line) + "\n";
  return page;
}

std::string option_entry(const Json& option) {
  const std::string value = option.value("value", "");
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}", plain(option["names"].get<std::string>()), plain(value),
                     paragraphs(option["text"].get<std::string>()));
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/// What stands behind the options: titles ("Examples:"), tables ("  name  text"), command lines, and text. `title` makes a
/// heading.
std::string footer_text(const std::string& footer, const std::string& title) {
  enum class Kind { none, heading, row, command, text } last = Kind::none;
  std::string page;
  for (const std::string& line : lines_of(footer)) {
    const std::size_t start = line.find_first_not_of(' ');
    if (start == std::string::npos && last == Kind::text) last = Kind::none;
    if (start == std::string::npos) continue;
    const std::string text = line.substr(start);
    const std::size_t gap = text.find("  ");
    const Kind kind = start == 0 ? text.ends_with(':') && text.size() < kLongestTitle ? Kind::heading : Kind::text
                      : gap != std::string::npos && text.find(" # ") == std::string::npos ? Kind::row
                                                                                          : Kind::command;
    if (last == Kind::command && kind != last) page += ".EE\n";
    if (kind == Kind::command) page += (last == kind ? "" : ".PP\n.EX\n") + plain(line) + "\n";
    if (kind == Kind::heading)
      page += fmt::format("{} \"{}\"\n", title,
                          plain(title == ".SH" ? upper(text.substr(0, text.size() - 1)) : text.substr(0, text.size() - 1)));
    if (kind == Kind::text && text.starts_with(kExitCodes))
      page += fmt::format("{} \"EXIT STATUS\"\n{}\n", title, plain(text.substr(kExitCodes.size())));
    else if (kind == Kind::text) page += (last == kind ? "" : ".PP\n") + plain(text) + "\n";
    if (kind == Kind::row)
      page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", plain(text.substr(0, gap)),
                          plain(text.substr(text.find_first_not_of(' ', gap))));
    last = kind;
  }
  return page + (last == Kind::command ? ".EE\n" : "");
}

std::string command_entry(const Json& command, const std::string& path) {
  const std::string own = path + " " + command["name"].get<std::string>();
  std::string usage = "\\fB" + plain(own) + "\\fR [\\fIoptions\\fR]";
  for (const Json& one : command["positionals"]) usage += " \\fI" + plain(one["names"].get<std::string>()) + "\\fR";
  if (!command["commands"].empty()) usage += " \\fIcommand\\fR";
  std::string page =
      fmt::format(".SS \"{}\"\n{}.PP\n{}\n", plain(own), paragraphs(command["description"].get<std::string>()), usage);
  for (const Json& one : command["positionals"]) page += option_entry(one);
  std::string topic;
  for (const char* wanted : {"Options", "Input", "Computation", "Output", "Machine"})
    for (const Json& option : command["options"]) {
      if (option["topic"] != wanted) continue;
      if (std::exchange(topic, wanted) != wanted) page += fmt::format(".PP\n\\fI{}\\fR\n", wanted);
      page += option_entry(option);
    }
  page += footer_text(command["footer"].get<std::string>(), ".PP\n.B");
  for (const Json& sub : command["commands"]) page += command_entry(sub, own);
  return page;
}

}  // namespace

std::string man_page(const Json& tree) {
  const std::string name = tree["name"];
  std::string page = fmt::format(
      ".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n.SH NAME\n{} \\- multiply and solve with large sparse matrices on GPUs "
      "and hosts\n"
      ".SH SYNOPSIS\n\\fB{}\\fR \\fIcommand\\fR [\\fIoptions\\fR]\n.PP\n\\fBmpirun \\-n\\fR \\fIranks\\fR \\fB{}\\fR "
      "\\fIcommand\\fR [\\fIoptions\\fR]\n.SH DESCRIPTION\n{}",
      name, name, version_number(), name, name, name, paragraphs(tree["description"].get<std::string>()));
  for (const Json& command : tree["commands"])
    page += fmt::format(".TP\n\\fB{}\\fR\n{}", plain(command["name"].get<std::string>()),
                        paragraphs(command["description"].get<std::string>()));
  page += ".SH OPTIONS\n";
  for (const Json& option : tree["options"]) page += option_entry(option);
  page +=
      ".TP\n\\fB\\-h, \\-\\-help\\fR, \\fB\\-\\-help\\-all\\fR\nof the program and of each command: print the common "
      "options, or all\n";
  page += ".SH COMMANDS\n";
  for (const Json& command : tree["commands"]) page += command_entry(command, name);
  return page + footer_text(tree["footer"].get<std::string>(), ".SH");
}

}  // namespace shardmat::tools
