#include "kernels/base/cgroup_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace shardmat {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;  // version 1 writes the largest number of pages, in bytes

/// The names of a version's files.
struct Version {
  const char *file_system, *limit, *used, *reclaimable;
};
constexpr Version kVersion1{"cgroup", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Version kVersion2{"cgroup2", "memory.max", "memory.current", "inactive_file"};

/// A hierarchy, or the part of it from `top` on, that is mounted at `point`.
struct Mount {
  std::string top, point;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  return words;
}

bool has_word(const std::string& text, std::string_view word) {
  const std::vector<std::string> words = split(text, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The kernel writes spaces, tabs, line ends and backslashes as three octal digits behind a backslash.
std::string unescaped(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '\\' && text.size() - i > 3 &&
                         std::all_of(&text[i + 1], &text[i + 4], [](char c) { return c >= '0' && c <= '7'; });
    result += escaped ? static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0') : text[i];
    if (escaped) i += 3;
  }
  return result;
}

/// Lines of mountinfo: id, parent, device, top, point, options, any number of fields, "-", file system, source, its options.
std::vector<Mount> mounts(const std::string& root, const Version& version) {
  std::vector<Mount> result;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4 || dash[1] != version.file_system) continue;
    if (&version == &kVersion1 && !has_word(dash[3], "memory")) continue;
    result.push_back({unescaped(fields[3]), unescaped(fields[4])});
  }
  return result;
}

/// The process's cgroup as its hierarchy names it; none if it is in none.
std::optional<std::string> cgroup(const std::string& root, const Version& version) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool wanted = &version == &kVersion1 ? has_word(controllers, "memory") : line.rfind("0::", 0) == 0;
    if (wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// Where the process's cgroup lies below the mount: "" for the mount itself, else "/…". A cgroup outside of what is
/// mounted, as in some containers, is taken for the mount's.
std::string below(const Mount& mount, const std::string& path) {
  const std::string top = mount.top == "/" ? "" : mount.top;
  if (path.find("/..") == 0 || top.find("/..") == 0) return "";
  if (path.compare(0, top.size(), top) != 0 || (path.size() > top.size() && path[top.size()] != '/')) return "";
  const std::string rest = path.substr(top.size());
  return rest == "/" ? "" : rest;
}

/// The number that a file begins with, or that stands behind `key` in its lines "key number". None: "max", no file.
std::optional<std::int64_t> number(const std::string& path, const std::string& key = "") {
  std::ifstream file(path);
  std::int64_t value = 0;
  if (key.empty()) return file >> value ? std::optional(value) : std::nullopt;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    if (words >> word && word == key && words >> value) return value;
  }
  return std::nullopt;
}

/// What one cgroup leaves.
std::int64_t available_in(const std::string& folder, const Version& version) {
  const std::string statistics = folder + "/memory.stat";
  const std::optional<std::int64_t> used = number(folder + "/" + version.used);
  std::int64_t limit = number(folder + "/" + version.limit).value_or(kNone);
  // Version 1 knows limits of cgroups above, also of those that a container does not see.
  if (&version == &kVersion1) limit = std::min(limit, number(statistics, "hierarchical_memory_limit").value_or(kNone));
  if (!used || limit > kUnlimited) return kNone;
  return std::clamp<std::int64_t>(limit - *used + number(statistics, version.reclaimable).value_or(0), 0, limit);
}

std::int64_t available_in(const std::string& root, const Mount& mount, std::string path, const Version& version) {
  std::int64_t least = kNone;
  for (;;) {
    least = std::min(least, available_in(root + mount.point + path, version));
    if (path.empty()) return least;
    path.resize(path.rfind('/'));
    // In version 1 a cgroup can be told to leave alone those below it.
    if (number(root + mount.point + path + "/memory.use_hierarchy") == 0) return least;
  }
}

}  // namespace

std::int64_t available_in_cgroups(const std::string& root) {
  std::int64_t least = kNone;
  for (const Version* version : {&kVersion1, &kVersion2}) {
    const std::optional<std::string> path = cgroup(root, *version);
    if (!path) continue;
    for (const Mount& mount : mounts(root, *version))
      least = std::min(least, available_in(root, mount, below(mount, *path), *version));
  }
  return least;
}

}  // namespace shardmat
