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
std::vector<Mount> mounts(const std::string& root, const Version& version, const std::string& controller) {
  std::vector<Mount> result;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4 || dash[1] != version.file_system) continue;
    if (&version == &kVersion1 && !has_word(dash[3], controller)) continue;
    result.push_back({unescaped(fields[3]), unescaped(fields[4])});
  }
  return result;
}

/// The process's cgroup as its hierarchy names it; none if it is in none.
std::optional<std::string> cgroup(const std::string& root, const Version& version, const std::string& controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool wanted = &version == &kVersion1 ? has_word(controllers, controller) : line.rfind("0::", 0) == 0;
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

/// A cgroup that bounds this process.
struct Level {
  std::string folder;
  const Version* version;
  bool own;  ///< the process's, else one above
};

std::vector<Level> levels(const std::string& root, const std::string& controller) {
  std::vector<Level> result;
  for (const Version* version : {&kVersion1, &kVersion2}) {
    const std::optional<std::string> path = cgroup(root, *version, controller);
    if (!path) continue;
    for (const Mount& mount : mounts(root, *version, controller)) {
      std::string at = below(mount, *path);
      result.push_back({root + mount.point + at, version, true});
      while (!at.empty()) {
        at.resize(at.rfind('/'));
        const std::string folder = root + mount.point + at;
        if (number(folder + "/memory.use_hierarchy") == 0) break;  // version 1: it leaves alone those below it
        result.push_back({folder, version, false});
      }
    }
  }
  return result;
}

/// Its own limit; kNone without one.
std::int64_t limit_of(const Level& level) {
  const std::int64_t limit = number(level.folder + "/" + level.version->limit).value_or(kNone);
  return limit > kUnlimited ? kNone : limit;
}

/// Version 1 tells of limits above, also of those in cgroups that a container does not see.
std::int64_t limit_above(const Level& level) {
  if (!level.own || level.version != &kVersion1) return kNone;
  const std::int64_t limit = number(level.folder + "/memory.stat", "hierarchical_memory_limit").value_or(kNone);
  return limit > kUnlimited ? kNone : limit;
}

std::int64_t available_in(const Level& level) {
  const std::int64_t limit = std::min(limit_of(level), limit_above(level));
  if (limit == kNone) return kNone;
  const std::optional<std::int64_t> used = number(level.folder + "/" + level.version->used);
  if (!used) return kNone;
  return std::clamp<std::int64_t>(
      limit - *used + number(level.folder + "/memory.stat", level.version->reclaimable).value_or(0), 0, limit);
}

std::int64_t least_of(const std::vector<Level>& levels) {
  std::int64_t least = kNone;
  for (const Level& level : levels) least = std::min(least, available_in(level));
  return least;
}

}  // namespace

std::int64_t available_in_cgroups(const std::string& root) {
  if (!root.empty()) return least_of(levels(root, "memory"));
  static const std::vector<Level> own = levels(root, "memory");  // launchers place a process before it starts
  return least_of(own);
}

std::vector<Cgroup> cgroups_of(const std::string& controller, const std::string& root) {
  std::vector<Cgroup> result;
  for (const Level& level : levels(root, controller))
    result.push_back({level.folder.substr(root.size()), level.version == &kVersion2 ? 2 : 1, level.own});
  return result;
}

std::vector<CgroupMemory> memory_of_cgroups(const std::string& root) {
  std::vector<CgroupMemory> result;
  std::int64_t least = kNone, above = kNone, left_above = kNone;
  for (const Level& level : levels(root, "memory")) {
    const std::int64_t limit = limit_of(level), available = available_in(level);
    if (limit != kNone) result.push_back({level.folder.substr(root.size()), limit, std::min(limit, available), level.own});
    least = std::min(least, limit);
    if (limit_above(level) < above) above = limit_above(level), left_above = available;
  }
  if (above < least) result.push_back({"", above, std::min(above, left_above), false});
  return result;
}

}  // namespace shardmat
