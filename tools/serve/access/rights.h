// Who a client is, and what it may do.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/serve/access/priority.h"

namespace shardmat::serve {

/// What a client must be allowed to do. `none`: nothing, not even to say who it is.
enum class Scope { none, read, multiply, vectors, admin };

constexpr std::array<std::string_view, 5> kScopeNames{"none", "read", "multiply", "vectors", "admin"};

constexpr std::string_view scope_name(Scope scope) { return kScopeNames[static_cast<std::size_t>(scope)]; }
constexpr std::optional<Scope> parse_scope(std::string_view text) {
  for (std::size_t i = 1; i < kScopeNames.size(); ++i)
    if (kScopeNames[i] == text) return static_cast<Scope>(i);
  return std::nullopt;
}

class Rights {
 public:
  double requests_per_second = 0, bytes_per_second = 0;  ///< 0: without limit
  double weight = 1;                                     ///< share of the ranks' time beside other clients
  Priority highest = Priority::normal;                   ///< that it may ask for

  /// Everything.
  static Rights of_owner(std::string name);
  /// `matrices`: patterns as of a shell, "fem-*".
  Rights(std::string name, const std::vector<Scope>& scopes, std::vector<std::string> matrices);

  const std::string& name() const { return name_; }
  bool may(Scope scope) const { return scope == Scope::none || scopes_[static_cast<std::size_t>(scope)]; }
  bool may_use(const std::string& matrix) const;
  /// True if no matrix, present or future, is left out.
  bool may_use_all() const { return std::find(matrices_.begin(), matrices_.end(), "*") != matrices_.end(); }

 private:
  std::string name_;
  std::bitset<kScopeNames.size()> scopes_;
  std::vector<std::string> matrices_;
};

}  // namespace shardmat::serve
