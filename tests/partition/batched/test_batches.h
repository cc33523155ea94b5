// Small batches and what tests ask of them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "partition/batched/batch_source.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat::test {

inline void expect_same(const HostBatch& a, const HostBatch& b) {
  EXPECT_EQ(a.first_row, b.first_row);
  EXPECT_EQ(a.first_col, b.first_col);
  EXPECT_EQ(a.row_ptr, b.row_ptr);
  EXPECT_EQ(a.col_idx, b.col_idx);
  EXPECT_EQ(a.values, b.values);
}

/// Three matrices: 2 × 3, 0 × 0 and 1 × 2, with an unsorted row among them.
inline HostBatch example_batch() { return {{0, 2, 2, 3}, {0, 3, 3, 5}, {0, 2, 3, 4}, {2, 0, 1, 1}, {1.5, -2, 0.1, 4}}; }

inline std::unique_ptr<BatchSource> memory(HostBatch batch, std::string name = "test") {
  return make_memory_batch(std::make_shared<const HostBatch>(std::move(batch)), std::move(name));
}

/// Totals, sizes and ranges of a source agree with the whole batch.
inline void expect_consistent(const BatchSource& source) {
  const HostBatch whole = source.read(0, source.count());
  const BatchView view = whole.view();
  EXPECT_EQ(source.count(), view.count());
  EXPECT_EQ(source.rows(), view.rows());
  EXPECT_EQ(source.cols(), view.cols());
  EXPECT_EQ(source.nnz(), view.nnz());
  const std::int64_t n = source.count();
  for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, n},
                                   {0, n / 2},
                                   {n / 2, n},
                                   {n / 3, n / 3 + n / 2},
                                   {n, n},
                                   {0, std::min<std::int64_t>(1, n)},
                                   {std::max<std::int64_t>(0, n - 1), n}}) {
    SCOPED_TRACE(testing::Message() << "matrices [" << begin << ", " << end << ")");
    HostBatch expected;
    expected.append(view.slice(begin, end));
    expect_same(source.read(begin, end), expected);
    const BatchSizes sizes = source.sizes(begin, end);
    ASSERT_EQ(std::ssize(sizes.rows), end - begin);
    ASSERT_EQ(std::ssize(sizes.cols), end - begin);
    ASSERT_EQ(std::ssize(sizes.nnz), end - begin);
    for (std::int64_t i = begin; i < end; ++i) {
      EXPECT_EQ(sizes.rows[static_cast<std::size_t>(i - begin)], view.rows_of(i));
      EXPECT_EQ(sizes.cols[static_cast<std::size_t>(i - begin)], view.cols_of(i));
      EXPECT_EQ(sizes.nnz[static_cast<std::size_t>(i - begin)], view.nnz_of(i));
    }
  }
  error_of([&] { source.read(0, n + 1); }, ErrorKind::internal);
  error_of([&] { source.sizes(-1, 0); }, ErrorKind::internal);
}

}  // namespace shardmat::test
