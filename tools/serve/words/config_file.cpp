#include "tools/serve/words/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat::serve {

using json = nlohmann::ordered_json;

namespace {

/// Options of which only one may be given.
constexpr std::pair<std::string_view, std::string_view> kEither[] = {{"ranks", "launcher"}, {"tokens", "no-token"}};

[[noreturn]] void fail(const std::string& why) { throw Error(ErrorKind::usage, why, "config"); }

bool names(const std::string& word, std::string_view option) {
  return word.rfind("--", 0) == 0 && std::string_view(word).substr(2, word.find('=') - 2) == option;
}

bool is_given(const std::vector<std::string>& words, std::string_view option) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return names(word, option); });
}

/// True if the command line decides about the option.
bool is_decided(const std::vector<std::string>& words, std::string_view option) {
  if (is_given(words, option)) return true;
  return std::any_of(std::begin(kEither), std::end(kEither), [&](const auto& pair) {
    return (pair.first == option && is_given(words, pair.second)) || (pair.second == option && is_given(words, pair.first));
  });
}

/// What stands behind the = of an option.
std::string value_text(const std::string& option, const json& value) {
  if (value.is_string()) return value;
  if (value.is_number()) return value.dump();
  fail(fmt::format("{} must be a string, a number, true or false, or a list of strings", option));
}

void add_option(std::vector<std::string>& words, const std::string& option, const json& value) {
  if (value.is_boolean()) {
    if (value.get<bool>()) words.push_back("--" + option);
    return;
  }
  for (const json& one : value.is_array() ? value : json::array({value}))
    words.push_back(fmt::format("--{}={}", option, value_text(option, one)));
}

}  // namespace

std::vector<std::string> add_config(std::vector<std::string> words, std::string_view text,
                                    const std::vector<std::string>& known) {
  const json config = json::parse(text, nullptr, false);
  if (!config.is_object()) fail("this is no JSON object with the names of options");
  std::vector<std::string> added;
  for (const auto& [option, value] : config.items()) {
    if (option == "config" || std::find(known.begin(), known.end(), option) == known.end())
      fail(fmt::format("there is no option \"{}\"; there are {}", option, fmt::join(known, ", ")));
    if (!is_decided(words, option)) add_option(added, option, value);
  }
  words.insert(words.end(), added.begin(), added.end());
  return words;
}

std::vector<std::string> with_config_file(std::vector<std::string> words, const std::vector<std::string>& known) {
  const auto found = std::find_if(words.begin(), words.end(), [](const std::string& word) { return names(word, "config"); });
  if (found == words.end()) return words;
  const std::size_t equals = found->find('=');
  if (equals == std::string::npos && found + 1 == words.end()) return words;  // the parser says what is missing
  const std::string file = equals != std::string::npos ? found->substr(equals + 1) : *(found + 1);
  std::ifstream stream(file);
  if (!stream) throw Error(ErrorKind::input, fmt::format("{}: {}", file, std::strerror(errno)), "config");
  std::ostringstream text;
  text << stream.rdbuf();
  try {
    return add_config(std::move(words), text.str(), known);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", file, error.what()), "config");
  }
}

}  // namespace shardmat::serve
