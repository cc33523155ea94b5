#include "tools/serve/http/names.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace shardmat::serve {
namespace {

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }
bool is_name_character(char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; }

/// The text with %41 as A; nothing for a wrong escape or a control character.
std::optional<std::string> unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      unsigned value = 0;
      const char* begin = text.data() + i + 1;
      if (i + 2 >= text.size() || std::from_chars(begin, begin + 2, value, 16).ptr != begin + 2) return std::nullopt;
      c = static_cast<char>(value);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    result += c;
  }
  return result;
}

template <class F>
bool split(std::string_view text, char separator, F&& take) {
  while (true) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (!take(text.substr(0, end))) return false;
    if (end == text.size()) return true;
    text.remove_prefix(end + 1);
  }
}

template <class T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

bool is_matrix_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && is_letter_or_digit(text[0]) &&
         std::all_of(text.begin(), text.end(), is_name_character);
}

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), is_name_character);
}

std::optional<Target> parse_target(std::string_view target) {
  if (target.empty() || target[0] != '/') return std::nullopt;
  Target result;
  const std::size_t mark = std::min(target.find('?'), target.size());
  const bool good_path = split(target.substr(1, mark - 1), '/', [&](std::string_view part) {
    auto name = unescaped(part);
    if (name) result.path.push_back(std::move(*name));
    return name.has_value();
  });
  if (!good_path || mark == target.size()) return good_path ? std::optional(std::move(result)) : std::nullopt;
  const bool good_query = split(target.substr(mark + 1), '&', [&](std::string_view part) {
    const std::size_t equals = std::min(part.find('='), part.size());
    auto name = unescaped(part.substr(0, equals)), value = unescaped(part.substr(std::min(equals + 1, part.size())));
    return name && value && result.query.emplace(std::move(*name), std::move(*value)).second;
  });
  return good_query ? std::optional(std::move(result)) : std::nullopt;
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<long long> parse_whole(std::string_view text) { return parse<long long>(text); }

std::string read_flag(const std::string& key, std::string_view value, bool& flag) {
  if (value != "0" && value != "1") return key + " must be 0 or 1";
  flag = value == "1";
  return {};
}

}  // namespace shardmat::serve
