// The tunables of a kernel as named integers. They can be printed, parsed and compared, for reports, command lines and cache
// files.
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

  /// The value of a tunable; throws Error(internal) if the policy has no tunable of this name.
  int at(std::string_view name) const;
  /// "threads_per_row=8,block_size=256"; empty if the kernel has no tunables.
  std::string text() const;
  /// A copy of this policy with the values of "name=value,name=value". For an unknown name throws Error(usage), which
  /// suggests the nearest name.
  Policy with(std::string_view overrides) const;
  /// Splits "name=value,…" into items whose names this policy has, and all other items.
  std::pair<std::string, std::string> split(std::string_view overrides) const;
  bool empty() const { return values_.empty(); }

  bool operator==(const Policy&) const = default;

 private:
  std::vector<std::pair<std::string, int>> values_;
};

/// The tunables of format and kernel, e.g. "slice=32,block_size=128"; empty if there are none.
std::string tunables_text(const Policy& layout, const Policy& policy);

}  // namespace shardmat
