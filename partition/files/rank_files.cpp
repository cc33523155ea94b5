#include "partition/files/rank_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

constexpr int kMostRanks = 1'000'000;

bool is_file(const std::string& name) {
  std::error_code ignored;
  const auto status = std::filesystem::status(name, ignored);
  return std::filesystem::exists(status) && !std::filesystem::is_directory(status);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A name with a place for a number of at least `digits` digits.
struct Pattern {
  std::string before, after;
  int digits = 0;

  std::string name_of(std::int64_t rank) const { return fmt::format("{}{:0{}}{}", before, rank, digits, after); }
};

/// "%d", "%5d" is none: a rank's number is filled with zeros.
std::optional<Pattern> pattern_of(const std::string& name) {
  const std::size_t at = name.find('%');
  if (at == std::string::npos || name.find('%', at + 1) != std::string::npos) return std::nullopt;
  std::size_t end = at + 1;
  int digits = 1;
  if (end < name.size() && name[end] == '0') {
    digits = 0;
    while (++end < name.size() && is_digit(name[end]) && digits < 10) digits = 10 * digits + (name[end] - '0');
    if (digits < 1 || digits > 9) return std::nullopt;
  }
  if (end >= name.size() || name[end] != 'd') return std::nullopt;
  return Pattern{name.substr(0, at), name.substr(end + 1), digits};
}

constexpr std::string_view kFirst = ".00000";

constexpr std::string_view kTails[] = {"", ".bin"};

/// The pattern of hypre's names from that of the first file.
std::optional<Pattern> pattern_of_first(const std::string& name) {
  for (const std::string_view tail : kTails) {
    const std::string end = std::string(kFirst).append(tail);
    const std::size_t begin = name.rfind('/') + 1;  // npos + 1 is 0
    if (name.size() > begin + end.size() && name.ends_with(end))
      return Pattern{name.substr(0, name.size() - end.size() + 1), std::string(tail), 5};
  }
  return std::nullopt;
}

/// The pattern of hypre's names: of "IJ.A" or of its first file.
std::optional<Pattern> hypre_pattern(const std::string& name) {
  if (auto pattern = pattern_of_first(name)) return pattern;
  for (const std::string_view tail : kTails)
    if (is_file(std::string(name).append(kFirst).append(tail))) return Pattern{name + ".", std::string(tail), 5};
  return std::nullopt;
}

std::optional<Pattern> pattern_with_file(const std::string& name) {
  for (const auto& find : {pattern_of, hypre_pattern})
    if (const auto pattern = find(name); pattern && is_file(pattern->name_of(0))) return pattern;
  return std::nullopt;
}

/// The largest number in the folder's names of this pattern; -1 without any.
int last_rank(const Pattern& pattern) {
  if (pattern.after.find('/') != std::string::npos) {  // the number is part of a folder's name
    int rank = 0;
    while (rank < kMostRanks && is_file(pattern.name_of(rank))) ++rank;
    return rank - 1;
  }
  const std::filesystem::path first = pattern.name_of(0);
  const std::string before = std::filesystem::path(pattern.before + "x").filename().string();
  const std::string_view start = std::string_view(before).substr(0, before.size() - 1);
  int last = -1;
  std::error_code error;
  const std::filesystem::path folder = first.has_parent_path() ? first.parent_path() : ".";
  for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    if (name.size() <= start.size() + pattern.after.size() || !name.starts_with(start) || !name.ends_with(pattern.after))
      continue;
    const std::string number = name.substr(start.size(), name.size() - start.size() - pattern.after.size());
    if (number.size() > 7 || !std::all_of(number.begin(), number.end(), is_digit)) continue;
    const int rank = std::stoi(number);
    if (rank < kMostRanks && pattern.name_of(rank).ends_with(name)) last = std::max(last, rank);
  }
  return last;
}

}  // namespace

bool is_rank_pattern(const std::string& name) { return pattern_of(name).has_value() && !is_file(name); }

bool names_rank_files(const std::string& name) { return !name.empty() && !is_file(name) && pattern_with_file(name); }

std::vector<std::filesystem::path> rank_files(const std::string& name) {
  const auto pattern = pattern_with_file(name);
  if (!pattern) return {};
  const int last = last_rank(*pattern);
  std::vector<std::filesystem::path> files;
  for (int rank = 0; rank <= last; ++rank) {
    files.emplace_back(pattern->name_of(rank));
    if (!is_file(files.back().string()))
      throw Error(ErrorKind::input, fmt::format("{}: the file of rank {} is missing, and {} of rank {} is there; copy the "
                                                "files of all ranks",
                                                files.back().string(), rank, pattern->name_of(last), last));
  }
  return files;
}

bool is_first_rank_file(const std::string& name) { return pattern_of_first(name).has_value(); }

std::vector<std::filesystem::path> rank_file_names(const std::string& first, std::int64_t files) {
  if (files == 1) return {first};
  const Pattern pattern = pattern_of_first(first).value();
  std::vector<std::filesystem::path> names;
  for (std::int64_t rank = 0; rank < files; ++rank) names.emplace_back(pattern.name_of(rank));
  return names;
}

std::vector<std::filesystem::path> later_rank_files(const std::string& first, std::int64_t files) {
  const Pattern pattern = pattern_of_first(first).value();
  std::vector<std::filesystem::path> later;
  for (std::int64_t rank = files, last = last_rank(pattern); rank <= last; ++rank)
    if (is_file(pattern.name_of(rank))) later.emplace_back(pattern.name_of(rank));
  return later;
}

}  // namespace shardmat
