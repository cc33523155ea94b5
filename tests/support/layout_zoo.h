// Formats in many layouts, and matrices whose rows are in no order.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/choose/registry.h"

namespace shardmat::test {

/// The columns of a row in another order, as they are where those of a part were renumbered.
inline HostCsr with_rows_rotated(HostCsr m) {
  for (std::size_t i = 0; i + 1 < m.row_ptr.size(); ++i) {
    const std::int64_t begin = m.row_ptr[i], end = m.row_ptr[i + 1],
                       by = (end - begin) / 2 + static_cast<std::int64_t>(i % 2);
    if (begin + by >= end) continue;
    std::rotate(m.col_idx.begin() + begin, m.col_idx.begin() + begin + by, m.col_idx.begin() + end);
    std::rotate(m.values.begin() + begin, m.values.begin() + begin + by, m.values.begin() + end);
  }
  return m;
}

/// The layouts that a format proposes, and others that --policy can ask for.
inline std::vector<Policy> layouts_to_try(const Format& format, ConversionInput& input) {
  static const std::map<std::string_view, std::vector<std::string_view>> kMore = {
      {"sell", {"slice=1,sigma=7", "slice=2,sigma=1", "slice=4,sigma=12", "slice=16,sigma=1", "slice=128,sigma=256"}},
      {"fold", {"width=0", "width=1", "width=3", "width=100"}},
      {"tiers", {"columns=3,tiers=2,least=1", "columns=20,tiers=31,least=2"}},
      {"tiled", {"warps=16,nonzeros=200", "warps=32,nonzeros=3000"}},
      {"pkt", {"packet_rows=32,packet_columns=64", "packet_rows=1024,packet_columns=6144"}},
  };
  std::vector<Policy> all = format.layouts(input);
  if (const auto more = kMore.find(format.name); more != kMore.end())
    for (const std::string_view layout : more->second) all.push_back(all.front().with(layout));
  return all;
}

/// Every shape that packed rows may have, of a matrix with at least 6 columns; `first` is any of its layouts.
inline std::vector<Policy> packed_shapes(const Policy& first) {
  std::vector<Policy> all;
  for (const char* shape : {"block=1,lanes=1", "block=1,lanes=2", "block=1,lanes=4", "block=2,lanes=1", "block=2,lanes=2",
                            "block=3,lanes=1", "block=3,lanes=3", "block=3,lanes=6", "block=4,lanes=4", "block=6,lanes=6"})
    all.push_back(first.with(std::string(shape) + ",shift=0,window=64"));
  return all;
}

}  // namespace shardmat::test
