// Who a client is, and what it may do.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/serve/words/priority.h"

namespace shardmat::serve {

/// What a client must be allowed to do. `none`: nothing, not even to say who it is.
enum class Scope { none, read, multiply, vectors, library, admin };

constexpr std::array<std::string_view, 6> kScopeNames{"none", "read", "multiply", "vectors", "library", "admin"};

constexpr std::string_view scope_name(Scope scope) { return kScopeNames[static_cast<std::size_t>(scope)]; }
constexpr std::optional<Scope> parse_scope(std::string_view text) {
  for (std::size_t i = 1; i < kScopeNames.size(); ++i)
    if (kScopeNames[i] == text) return static_cast<Scope>(i);
  return std::nullopt;
}

class Rights {
 public:
  double requests_per_second = 0, bytes_per_second = 0;      ///< 0: without limit
  double weight = 1;                                         ///< share of the ranks' time beside other clients
  Priority highest = Priority::normal;                       ///< that it may ask for
  std::uint64_t memory_bytes = 0;                            ///< most in vectors and in the arena; 0: without limit
  double expires = std::numeric_limits<double>::infinity();  ///< seconds since 1970

  /// Everything; what it makes is its own.
  static Rights of_anyone(std::string name);
  /// Everything, as the owner of the service, who also has all that others make.
  static Rights of_owner(std::string name);
  /// `matrices`: patterns as of a shell, "fem-*".
  Rights(std::string name, const std::vector<Scope>& scopes, std::vector<std::string> matrices);

  const std::string& name() const { return name_; }
  /// Whose its vectors are. The owner of the service is one tenant, however it comes in.
  const std::string& tenant() const;
  bool is_owner() const { return is_owner_; }
  /// Its token is no longer one. Such rights allow nothing.
  bool is_revoked() const { return is_revoked_; }
  void revoke();
  bool may(Scope scope) const { return scope == Scope::none || scopes_[static_cast<std::size_t>(scope)]; }
  bool may_use(const std::string& matrix) const;
  /// True if no matrix, present or future, is left out.
  bool may_use_all() const { return std::find(matrices_.begin(), matrices_.end(), "*") != matrices_.end(); }

 private:
  std::string name_;
  std::bitset<kScopeNames.size()> scopes_;
  std::vector<std::string> matrices_;
  bool is_owner_ = false, is_revoked_ = false;
};

/// True if the text matches one of the patterns, which are as of a shell.
bool matches_any(const std::vector<std::string>& patterns, const std::string& text);

}  // namespace shardmat::serve
