// The row maps that a context made and that somebody still holds, for RowMap::make().
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace shardmat {

class RowMap;

struct RowMaps {
  std::vector<std::pair<std::int64_t, std::weak_ptr<const RowMap>>> known;  ///< with the turn in which each was made
  std::int64_t made = 0;                                                    ///< equal on all ranks
};

}  // namespace shardmat
