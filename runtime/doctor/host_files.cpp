#include "runtime/doctor/host_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace shardmat::doctor {
namespace {

constexpr const char* kBlank = " \t\r\n";

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::optional<std::int64_t> number_at_start(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string HostFiles::text(const std::string& path) const {
  std::ifstream file(root_ + path);
  std::ostringstream all;
  if (file) all << file.rdbuf();
  return all.str();
}

std::string HostFiles::line(const std::string& path) const {
  std::ifstream file(root_ + path);
  std::string first;
  std::getline(file, first);
  return trimmed(first);
}

std::optional<std::int64_t> HostFiles::number(const std::string& path) const { return number_at_start(line(path)); }

std::string HostFiles::behind(const std::string& path, const std::string& key) const {
  std::ifstream file(root_ + path);
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key, 0) == 0)
      return trimmed(line.substr(std::min(line.size(), line.find_first_not_of(": \t", key.size()))));
  return {};
}

std::vector<std::string> HostFiles::names(const std::string& folder) const {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root_ + folder, error), end; !error && entry != end; entry.increment(error))
    found.push_back(entry->path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

bool HostFiles::exists(const std::string& path) const {
  std::error_code error;
  return std::filesystem::exists(root_ + path, error);
}

std::optional<bool> HostFiles::may_use(const std::string& path) const {
  if (::access((root_ + path).c_str(), R_OK | W_OK) == 0) return true;
  if (errno == EPERM || errno == EACCES) return false;
  return std::nullopt;
}

std::vector<int> numbers_of_list(const std::string& list) {
  constexpr std::int64_t kMost = 1 << 16;
  std::vector<int> numbers;
  for (const std::string& range : words_of(list, ", \n")) {
    const std::size_t dash = range.find('-');
    const auto first = number_at_start(range);
    const auto last = dash == std::string::npos ? first : number_at_start(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last > kMost) continue;
    for (std::int64_t i = *first; i <= *last; ++i) numbers.push_back(static_cast<int>(i));
  }
  return numbers;
}

std::string list_of_numbers(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = ++last) {
    last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
  }
  return text;
}

std::vector<std::string> words_of(const std::string& text, const char* separators) {
  std::vector<std::string> words;
  for (std::size_t begin = text.find_first_not_of(separators); begin != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(separators, end);
  }
  return words;
}

}  // namespace shardmat::doctor
