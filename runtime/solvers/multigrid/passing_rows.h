// Rows that are made when they are first used and forgotten after the last use.
//
// Threads: one thread at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/host/lanes.h"
#include "runtime/solvers/multigrid/accumulator.h"

namespace shardmat::multigrid {

/// Rows of blocks of kEntries values; 0: known at run time.
template <int kEntries>
class PassingRows {
 public:
  struct Row {
    std::int32_t count = 0;
    std::int32_t* column = nullptr;
    double* value = nullptr;
  };

  /// Of rows 0 … rows - 1, with columns below `columns`.
  PassingRows(std::int64_t rows, std::int64_t columns, std::int64_t entries)
      : entries_(entries), row_(at(rows)), accumulator_(columns, entries) {}

  /// Makes row i of the terms: each(use) calls use(column, what …) for every one, and add(block, what …) adds it.
  template <class Each, class Add>
  SHARDMAT_INLINE const Row& make(std::int64_t i, const Each& each, const Add& add) {
    typename Accumulator<kEntries>::Row sums(accumulator_);
    each([&](std::int32_t column, auto... what) SHARDMAT_INLINE_LAMBDA { add(sums.block(column), what...); });
    Row& row = row_[at(i)];
    row = room_for(sums.count());
    accumulator_.copy_to(row.column, row.value, row.count);
    return row;
  }
  const Row& operator[](std::int64_t i) const { return row_[at(i)]; }
  void forget(std::int64_t i) { free_[size_class(row_[at(i)].count)].push_back(row_[at(i)]); }

 private:
  /// Rows of a class have the same room: a power of two of blocks.
  static std::size_t size_class(std::int32_t count) { return at(std::bit_width(static_cast<std::uint32_t>(count))); }

  Row room_for(std::int32_t count) {
    std::vector<Row>& free = free_[size_class(count)];
    if (free.empty()) add_rooms(size_class(count));
    Row row = free.back();
    free.pop_back();
    row.count = count;
    return row;
  }
  /// Twice as many as before, up to a huge page of them.
  [[gnu::noinline]] void add_rooms(std::size_t size) {
    constexpr std::int64_t kMost = 2 << 20;
    const std::int64_t blocks = std::int64_t{1} << size, bytes = blocks * 8 * entries_,
                       rooms = std::clamp<std::int64_t>(rooms_[size], 4, std::max<std::int64_t>(4, kMost / bytes));
    columns_.emplace_back(at(rooms * blocks)), values_.emplace_back(at(rooms * blocks * entries_));
    for (std::int64_t r = rooms - 1; r >= 0; --r)
      free_[size].push_back({0, columns_.back().data() + r * blocks, values_.back().data() + r * blocks * entries_});
    rooms_[size] += rooms;
  }

  std::int64_t entries_;
  HostVector<Row> row_;  ///< those in use are set
  Accumulator<kEntries> accumulator_;
  std::vector<HostVector<std::int32_t>> columns_;
  std::vector<HostVector<double>> values_;
  std::vector<Row> free_[33];    ///< by class; the last one freed is in a cache still
  std::int64_t rooms_[33] = {};  ///< made so far, by class
};

}  // namespace shardmat::multigrid
