// Groups of whole matrices of a batch, each for one thread block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/batched/device_batch.h"

namespace shardmat::batched {

/// What the largest group needs.
struct Largest {
  int rows = 0, cols = 0, entries = 0;
};

/// Consecutive matrices, together at least `rows` rows where more would still fit.
class Groups {
 public:
  Groups(const BatchOffsets& at, int rows) {
    const auto put = [&](std::size_t i) {
      list_.insert(list_.end(), {at.first_row[i], at.first_col[i], at.first_entry[i], 0});
    };
    const auto matrices = static_cast<std::size_t>(at.count());
    const std::int32_t most = std::max(rows, at.most_cols);
    for (std::size_t begin = 0, i = 0; i < matrices; begin = i) {
      put(begin);
      for (++i; i < matrices && at.first_row[i] - at.first_row[begin] < rows &&
                at.first_row[i + 1] - at.first_row[begin] <= std::max(rows, at.most_rows) &&
                at.first_col[i + 1] - at.first_col[begin] <= most;)
        ++i;
      largest.rows = std::max(largest.rows, at.first_row[i] - at.first_row[begin]);
      largest.cols = std::max(largest.cols, at.first_col[i] - at.first_col[begin]);
      largest.entries = std::max(largest.entries, at.first_entry[i] - at.first_entry[begin]);
      ++count;
    }
    put(matrices);
  }
  std::vector<std::int32_t> take() { return std::move(list_); }

  std::int64_t count = 0;
  Largest largest;

 private:
  std::vector<std::int32_t> list_;
};

/// What the largest group of at least `rows` rows needs; cheap where each matrix is one.
inline Largest largest_group(const BatchOffsets& at, int rows) {
  return rows == 1 ? Largest{at.most_rows, at.most_cols, at.most_entries} : Groups(at, rows).largest;
}

}  // namespace shardmat::batched
