#include "tools/serve/ranks/claims.h"

#include <algorithm>
#include <utility>

namespace shardmat::serve {

void Claims::add(std::uint64_t work, std::vector<Claim> claims) {
  for (const Claim& claim : claims) {
    Waiting& waiting = waiting_[{claim.kind, claim.number}];
    waiting.all.insert(work);
    if (claim.writes) waiting.writers.insert(work);
  }
  claims_.emplace(work, std::move(claims));
}

void Claims::remove(std::uint64_t work) {
  const auto found = claims_.find(work);
  if (found == claims_.end()) return;
  for (const Claim& claim : found->second) {
    const auto waiting = waiting_.find({claim.kind, claim.number});
    waiting->second.all.erase(work);
    waiting->second.writers.erase(work);
    if (waiting->second.all.empty()) waiting_.erase(waiting);
  }
  claims_.erase(found);
}

bool Claims::may_begin(std::uint64_t work) const {
  const auto found = claims_.find(work);
  if (found == claims_.end()) return true;
  return std::all_of(found->second.begin(), found->second.end(), [&](const Claim& claim) {
    const Waiting& waiting = waiting_.at({claim.kind, claim.number});
    if (claim.writes) return *waiting.all.begin() == work;
    return waiting.writers.empty() || *waiting.writers.begin() > work;
  });
}

}  // namespace shardmat::serve
