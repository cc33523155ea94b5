#include "tools/serve/words/rights.h"

#include <fnmatch.h>

#include <utility>

namespace shardmat::serve {

Rights Rights::of_anyone(std::string name) {
  Rights rights(std::move(name), {Scope::read, Scope::multiply, Scope::vectors, Scope::library, Scope::admin}, {"*"});
  rights.highest = Priority::high;
  return rights;
}

Rights Rights::of_owner(std::string name) {
  Rights rights = of_anyone(std::move(name));
  rights.is_owner_ = true;
  return rights;
}

Rights::Rights(std::string name, const std::vector<Scope>& scopes, std::vector<std::string> matrices)
    : name_(std::move(name)), matrices_(std::move(matrices)) {
  for (const Scope scope : scopes) scopes_.set(static_cast<std::size_t>(scope));
}

const std::string& Rights::tenant() const {
  static const std::string owner = "owner";
  return is_owner_ ? owner : name_;
}

void Rights::revoke() {
  is_revoked_ = true, is_owner_ = false;
  scopes_.reset();
  matrices_.clear();
}

bool Rights::may_use(const std::string& matrix) const { return matches_any(matrices_, matrix); }

bool matches_any(const std::vector<std::string>& patterns, const std::string& text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return fnmatch(pattern.c_str(), text.c_str(), 0) == 0; });
}

}  // namespace shardmat::serve
