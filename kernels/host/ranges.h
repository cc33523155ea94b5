// Work of host kernels on ranges of rows.
#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/host/lanes.h"

namespace shardmat {

/// Calls body(Set{}, begin, end) for each range of rows, compiled for the instruction set; several threads call it.
/// `starts`: first rows of the ranges, then the number of rows (even_starts()). REQUIRES: as run_compiled_for().
template <class Body>
void for_each_range(const std::vector<std::int64_t>& starts, Isa isa, const Body& body) {
  parallel_tasks(std::ssize(starts) - 1, [&](std::int64_t t) {
    const std::int64_t begin = starts[static_cast<std::size_t>(t)], end = starts[static_cast<std::size_t>(t) + 1];
    run_compiled_for(isa, [&]<class Set>(Set set) SHARDMAT_INLINE_LAMBDA { body(set, begin, end); });
  });
}

}  // namespace shardmat
