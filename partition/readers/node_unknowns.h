// Finding unknowns by node and degree of freedom. Internal to readers/.
#pragma once

#include <algorithm>

#include "partition/source/unknowns.h"

namespace shardmat {

/// Sorts by node, then degree of freedom, and removes duplicates.
inline void sort_unknowns(UnknownList& unknowns) {
  std::sort(unknowns.begin(), unknowns.end());
  unknowns.erase(std::unique(unknowns.begin(), unknowns.end()), unknowns.end());
}

/// The place of an unknown among sorted ones; -1 if it is none of them.
inline std::int64_t place_of(const UnknownList& sorted, const NodeUnknown& unknown) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), unknown);
  return at == sorted.end() || *at != unknown ? -1 : at - sorted.begin();
}

}  // namespace shardmat
