// How commands declare their options. CLI11 stays behind this header: parsing and instantiating it takes 4 to 8 s a file, so
// only options.cpp, program.cpp and the help do. All types here are handles; what they stand for lives as long as the
// program.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace shardmat::tools {

/// The part of the help in which an option stands. The help shows the parts in this order.
enum class Topic { input, computation, output, machine };

/// What an option does with the text of a value before it is converted.
class ValueCheck {
 public:
  /// `check` returns what is wrong with the text, or nothing. It may change the text.
  explicit ValueCheck(std::function<std::string(std::string&)> check);
  explicit ValueCheck(CLI::Validator validator);

  const CLI::Validator& cli11() const { return *validator_; }

 private:
  std::shared_ptr<const CLI::Validator> validator_;
};

/// One of these words; --help lists them.
ValueCheck one_of(std::vector<std::string> words);
/// Turns "512MB" into a number of bytes; kB is 1000, KiB 1024.
ValueCheck bytes_with_unit();

/// One option of a command. Every call returns the same option, for the next call.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  const Option* operator->() const { return this; }
  /// --help shows the option. --help-all shows every option.
  Option common() const;
  Option required(bool yes = true) const;
  Option check(const ValueCheck& check) const;
  Option transform(const ValueCheck& check) const;
  /// --help then shows the value that the variable has now.
  Option capture_default_str() const;
  /// Values may come as one word "a,b".
  Option delimiter(char separator) const;
  Option allow_extra_args(bool yes) const;
  /// The word for a value in --help.
  Option type_name(const std::string& name) const;
  /// What --help shows in place of the value's name.
  Option option_text(const std::string& text) const;
  /// The value may be left out; then it is `otherwise`.
  Option optional_value(const std::string& otherwise) const;
  Option excludes(Option other) const;
  Option excludes(const std::string& other) const;
  Option needs(Option other) const;

 private:
  CLI::Option* option_;
};

/// A command, or the whole program.
class CommandLine {
 public:
  explicit CommandLine(CLI::App& app) : app_(&app) {}

  CommandLine add_subcommand(const std::string& name, const std::string& help) const;
  /// The same command; the options that are added to what this returns stand in this part of the help.
  CommandLine in(Topic topic) const;
  /// For the types that options.cpp instantiates. `value` keeps what it has if the option is not given.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& help) const;
  template <class T>
  Option add_flag(const std::string& names, T& value, const std::string& help) const;
  /// Calls `take` with the value.
  Option add_option_function(const std::string& names, const std::function<void(const std::string&)>& take,
                             const std::string& help) const;
  /// Calls `given` if the flag is there.
  Option add_flag_callback(const std::string& names, const std::function<void()>& given, const std::string& help) const;
  /// Text behind the options in --help.
  void footer(const std::string& text) const;
  /// Calls `met` when parsing comes to the name of this command, before it looks at what follows.
  void when_met(const std::function<void()>& met) const;
  /// One of the subcommands has to be named.
  void require_subcommand() const;

  std::vector<CommandLine> subcommands() const;
  /// True once parsing has met this command.
  bool parsed() const;
  /// `name` begins with --.
  bool has_option(const std::string& name) const;
  /// How often the option was given.
  std::size_t count(const std::string& name) const;

  CLI::App& cli11() const { return *app_; }

 private:
  Option placed(CLI::Option* option) const;

  CLI::App* app_;
  std::optional<Topic> topic_;
};

/// What a function that CommandLine::add_option_function() calls throws about a value.
[[noreturn]] void refuse_value(const std::string& option, const std::string& why);

}  // namespace shardmat::tools
