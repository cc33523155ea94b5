// The batches of the figures of Nagasaka, Nukada, Kojima and Matsuoka, and one that is not in the paper.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace shardmat::tools {

/// Numbers of columns are the powers of two from least to most, or only these two.
struct BatchFigure {
  std::string_view name, source;
  std::int64_t least, most;
  bool all_between = true;
};

inline constexpr BatchFigure kBatchFigures[] = {
    {"6a", "batch:count=50,dim=50,row_nnz=2,seed=1", 8, 64},
    {"6b", "batch:count=100,dim=50,row_nnz=3,seed=1", 8, 512},
    {"7a", "batch:count=100,dim=32,row_nnz=3,seed=1", 8, 512},
    {"7b", "batch:count=100,dim=64,row_nnz=3,seed=1", 8, 512},
    {"7c", "batch:count=100,dim=128,row_nnz=3,seed=1", 8, 512},
    {"7d", "batch:count=50,dim=64,row_nnz=3,seed=1", 8, 512},
    {"7e", "batch:count=100,dim=64,row_nnz=1,seed=1", 8, 512},
    {"7f", "batch:count=100,dim=64,row_nnz=5,seed=1", 8, 512},
    {"8", "batch:count=100,dim=32-256,row_nnz=1-5,seed=1", 8, 1024},
    {"large", "molecules:count=16384,seed=1", 64, 256, false},
};

inline std::vector<std::int64_t> powers_of_two(std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> counts;
  for (std::int64_t count = least; count <= most; count *= 2) counts.push_back(count);
  return counts;
}

}  // namespace shardmat::tools
