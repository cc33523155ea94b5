#include "tools/serve/access/rights.h"

#include <fnmatch.h>

#include <utility>

namespace shardmat::serve {

Rights Rights::of_owner(std::string name) {
  Rights rights(std::move(name), {Scope::read, Scope::multiply, Scope::vectors, Scope::admin}, {"*"});
  rights.highest = Priority::high;
  return rights;
}

Rights::Rights(std::string name, const std::vector<Scope>& scopes, std::vector<std::string> matrices)
    : name_(std::move(name)), matrices_(std::move(matrices)) {
  for (const Scope scope : scopes) scopes_.set(static_cast<std::size_t>(scope));
}

bool Rights::may_use(const std::string& matrix) const {
  return std::any_of(matrices_.begin(), matrices_.end(),
                     [&](const std::string& pattern) { return fnmatch(pattern.c_str(), matrix.c_str(), 0) == 0; });
}

}  // namespace shardmat::serve
