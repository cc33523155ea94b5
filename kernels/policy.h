// The tunables of a kernel as named integers: printable, parseable, comparable, so that they fit in a report, on a command
// line and in a cache file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardmat {

class Policy {
 public:
  Policy() = default;
  Policy(std::initializer_list<std::pair<std::string, int>> values) : values_(values) {}

  /// The value of a tunable; throws Error(internal) if this kernel has none of that name.
  int at(std::string_view name) const;
  /// "threads_per_row=8,block_size=256"; empty if the kernel has no tunables.
  std::string text() const;
  /// This policy with the values of "name=value,name=value" put in. Throws Error(usage) with the nearest right spelling.
  Policy with(std::string_view overrides) const;
  /// The items of "name=value,…" whose names this policy has, and the others.
  std::pair<std::string, std::string> split(std::string_view overrides) const;
  bool empty() const { return values_.empty(); }

  bool operator==(const Policy&) const = default;

 private:
  std::vector<std::pair<std::string, int>> values_;
};

/// The tunables of format and kernel, e.g. "slice=32,block_size=128"; empty if there are none.
std::string tunables_text(const Policy& layout, const Policy& policy);

}  // namespace shardmat
