#include "tools/serve/ranks/fair_shares.h"

#include <algorithm>

namespace shardmat::serve {

double FairShares::had(const Client& client) const {
  const auto found = had_.find(client.name);
  return found == had_.end() ? clock_ : std::max(clock_, found->second);
}

std::size_t FairShares::least(std::span<const Client* const> some) const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < some.size(); ++i)
    if (had(*some[i]) < had(*some[best])) best = i;
  return best;
}

std::size_t FairShares::next(std::span<const Client* const> waiting) {
  const std::size_t first = least(waiting);
  clock_ = had(*waiting[first]);
  return first;
}

void FairShares::charge(const Client& client, double seconds) {
  const double before = had(client);
  had_[client.name] = before + seconds / client.weight;
}

}  // namespace shardmat::serve
