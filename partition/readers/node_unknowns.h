// Lists of unknowns in files, and finding them by node and degree of freedom. Internal to readers/ and nodes/.
#pragma once

#include <algorithm>

#include "partition/readers/text_source.h"
#include "partition/source/unknowns.h"

namespace shardmat {

/// The unknowns of a .dof file, in its order: a line "node.dof" each. Throws Error(input) with file and line.
UnknownList read_unknowns(const std::filesystem::path& path, const ReadLimits& limits);

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
