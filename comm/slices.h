// MPI counts are int, so long transfers go in slices.
#pragma once

#include <algorithm>
#include <cstddef>

namespace shardmat {

/// Calls f(offset, bytes) for consecutive slices of at most `limit` bytes that cover [0, total). No call if total is 0.
template <class F>
void for_each_message_slice(std::size_t total, std::size_t limit, F&& f) {
  for (std::size_t offset = 0; offset < total; offset += std::min(limit, total - offset))
    f(offset, std::min(limit, total - offset));
}

}  // namespace shardmat
