// Files of /proc and /sys, as they are or below another folder.
//
// Threads: any thread, several at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardmat::doctor {

class HostFiles {
 public:
  /// `root` stands for /. Only tests pass one.
  explicit HostFiles(std::string root = "") : root_(std::move(root)) {}
  const std::string& root() const { return root_; }

  /// All text; empty if the file cannot be read.
  std::string text(const std::string& path) const;
  /// The first line; empty if there is none.
  std::string line(const std::string& path) const;
  /// The number that a file begins with.
  std::optional<std::int64_t> number(const std::string& path) const;
  /// What stands behind `key` in the first line that begins with it, without colon and spaces around it.
  std::string behind(const std::string& path, const std::string& key) const;
  /// Names in a folder, sorted; none if there is no such folder.
  std::vector<std::string> names(const std::string& folder) const;
  bool exists(const std::string& path) const;
  /// Whether this process may read and write the file, permissions and cgroups of devices considered; nothing if there is
  /// none or it cannot be told. Opens nothing: a GPU that is opened wakes up first.
  std::optional<bool> may_use(const std::string& path) const;

 private:
  std::string root_;
};

/// "0-3,8" as numbers, and back.
std::vector<int> numbers_of_list(const std::string& list);
std::string list_of_numbers(const std::vector<int>& numbers);

/// Words between separators, without empty ones.
std::vector<std::string> words_of(const std::string& text, const char* separators = " \t\n");

}  // namespace shardmat::doctor
