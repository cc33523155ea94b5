// Batches of every mixture, and dense operands for them, for the suites over kernels for batches.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/batched/batch.h"
#include "tests/support/plan_check.h"

namespace shardmat::test {

struct NamedBatch {
  std::string name;
  HostBatch batch;
  std::int64_t most_columns;  ///< that are tried with it
};

/// Appends a matrix whose rows have 0 … `most` entries in any order, some of them twice.
inline void add_matrix(HostBatch& batch, std::int64_t rows, std::int64_t cols, std::int64_t most, std::mt19937& random) {
  HostBatch one;
  one.first_row = {0, rows};
  one.first_col = {0, cols};
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t length = cols == 0 ? 0 : static_cast<std::int64_t>(random()) % (most + 1);
    for (std::int64_t k = 0; k < length; ++k) {
      one.col_idx.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(cols)));
      one.values.push_back(value_of(random()));
    }
    one.row_ptr.push_back(std::ssize(one.values));
  }
  batch.append(one.view());
}

inline std::vector<NamedBatch> batch_zoo() {
  std::mt19937 random(7);
  std::vector<NamedBatch> zoo;
  HostBatch mixed, tiny, tall, hub, empty, large;
  for (const int n : {50, 0, 1, 1, 2, 31, 32, 33, 0, 64, 100, 3, 255, 17, 1, 0}) add_matrix(mixed, n, n, 5, random);
  for (const auto& [rows, cols] : {std::pair{5, 0}, {0, 7}, {3, 40}, {40, 3}, {1, 90}, {90, 1}})
    add_matrix(mixed, rows, cols, 4, random);
  for (int i = 0; i < 2000; ++i) add_matrix(tiny, i % 4, 1 + i % 3, 3, random);
  add_matrix(tall, 9000, 5, 2, random);
  add_matrix(tall, 20, 20, 3, random);
  add_matrix(hub, 40, 600, 400, random);
  add_matrix(hub, 8, 8, 64, random);
  for (int i = 0; i < 5; ++i) add_matrix(empty, 0, i, 0, random);
  for (const int n : {1024, 700, 1}) add_matrix(large, n, n, 6, random);
  zoo.push_back({"mixed", mixed, 1024});
  zoo.push_back({"tiny", tiny, 64});
  zoo.push_back({"tall", tall, 33});
  zoo.push_back({"hub", hub, 64});
  zoo.push_back({"large", large, 64});
  zoo.push_back({"rows in none", empty, 16});
  zoo.push_back({"none", {}, 16});
  return zoo;
}

/// A dense row-major matrix on the host with `skip` entries between its rows.
template <class T>
struct Dense {
  std::int64_t columns, leading;
  std::vector<T> entries;

  Dense(std::int64_t rows, std::int64_t columns_, std::int64_t skip, std::size_t seed)
      : columns(columns_), leading(columns_ + skip), entries(static_cast<std::size_t>(rows * leading)) {
    for (std::size_t k = 0; k < entries.size(); ++k) entries[k] = static_cast<T>(value_of(seed + k));
  }
  T& at(std::int64_t row, std::int64_t column) { return entries[static_cast<std::size_t>(row * leading + column)]; }
  double at(std::int64_t row, std::int64_t column) const {
    return static_cast<double>(entries[static_cast<std::size_t>(row * leading + column)]);
  }
};

}  // namespace shardmat::test
