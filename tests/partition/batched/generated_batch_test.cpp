#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "partition/batched/batch_source.h"
#include "tests/partition/batched/test_batches.h"

namespace shardmat {
namespace {

using test::error_of;

TEST(GeneratedBatchTest, RangesEqualTheWhole) {
  for (const char* specification :
       {"batch", "batch:count=1000,dim=0-9", "batch:count=50,cols=5-400,row_nnz=0-300", "molecules:count=1000",
        "batch:count=0", "molecules:count=0", "batch:dim=0", "batch:cols=0"}) {
    SCOPED_TRACE(specification);
    const auto batch = open_batch(specification);
    EXPECT_EQ(batch->name(), specification);
    test::expect_consistent(*batch);
    validate(batch->read(0, batch->count()).view());
  }
}

TEST(GeneratedBatchTest, DrawsSizesFromTheirRanges) {
  const auto batch = open_batch("batch:count=500,dim=3-6,cols=8-9,row_nnz=2-4");
  const BatchSizes sizes = batch->sizes(0, 500);
  std::set<std::int64_t> rows(sizes.rows.begin(), sizes.rows.end()), cols(sizes.cols.begin(), sizes.cols.end()), row_nnz;
  for (std::size_t i = 0; i < 500; ++i) row_nnz.insert(sizes.nnz[i] / sizes.rows[i]);
  EXPECT_EQ(rows, (std::set<std::int64_t>{3, 4, 5, 6}));
  EXPECT_EQ(cols, (std::set<std::int64_t>{8, 9}));
  EXPECT_EQ(row_nnz, (std::set<std::int64_t>{2, 3, 4}));
}

TEST(GeneratedBatchTest, RowsHaveDistinctColumnsAndNoMoreThanThereAre) {
  const HostBatch batch = open_batch("batch:count=40,dim=6,cols=1-6,row_nnz=4")->read(0, 40);
  const BatchView view = batch.view();
  for (std::int64_t i = 0; i < 40; ++i)
    for (std::int64_t row = 6 * i; row < 6 * i + 6; ++row) {
      const auto begin = batch.col_idx.begin() + batch.row_ptr[static_cast<std::size_t>(row)];
      const auto end = batch.col_idx.begin() + batch.row_ptr[static_cast<std::size_t>(row + 1)];
      EXPECT_EQ(end - begin, std::min<std::int64_t>(4, view.cols_of(i)));
      EXPECT_TRUE(std::is_sorted(begin, end));
      EXPECT_EQ(std::adjacent_find(begin, end), end);
    }
  EXPECT_TRUE(std::all_of(batch.values.begin(), batch.values.end(), [](double v) { return v >= -1 && v < 1; }));
}

TEST(GeneratedBatchTest, SeedsDiffer) {
  for (const std::string name : {"batch", "molecules"}) {
    const HostBatch a = open_batch(name + ":seed=1")->read(0, 100), b = open_batch(name + ":seed=2")->read(0, 100);
    EXPECT_NE(a.first_row, b.first_row);
    EXPECT_NE(a.col_idx, b.col_idx);
  }
}

TEST(GeneratedBatchTest, MoleculesAreConnectedWithAtMostFourNeighbours) {
  const auto batch = open_batch("molecules:count=5000");
  const HostBatch all = batch->read(0, 5000);
  const BatchView view = all.view();
  std::set<std::int64_t> sizes;
  for (std::int64_t i = 0; i < 5000; ++i) {
    const std::int64_t atoms = view.rows_of(i);
    sizes.insert(atoms);
    std::vector<std::vector<bool>> dense(static_cast<std::size_t>(atoms),
                                         std::vector<bool>(static_cast<std::size_t>(atoms)));
    std::vector<std::size_t> component(static_cast<std::size_t>(atoms));
    for (std::size_t row = 0; row < component.size(); ++row) component[row] = row;
    for (std::size_t row = 0; row < dense.size(); ++row) {
      const std::size_t stacked = static_cast<std::size_t>(view.first_row[static_cast<std::size_t>(i)]) + row;
      ASSERT_LE(all.row_ptr[stacked + 1] - all.row_ptr[stacked], 5);
      for (auto k = all.row_ptr[stacked]; k < all.row_ptr[stacked + 1]; ++k) {
        const auto col = static_cast<std::size_t>(all.col_idx[static_cast<std::size_t>(k)]);
        ASSERT_FALSE(dense[row][col]) << "twice";
        dense[row][col] = true;
        const std::size_t from = component[row], to = component[col];
        std::replace(component.begin(), component.end(), from, to);
      }
      ASSERT_TRUE(dense[row][row]);
    }
    for (std::size_t row = 0; row < dense.size(); ++row)
      for (std::size_t col = 0; col < row; ++col) ASSERT_EQ(dense[row][col], dense[col][row]);
    ASSERT_EQ(std::set<std::size_t>(component.begin(), component.end()).size(), 1U) << "molecule " << i;
  }
  EXPECT_EQ(*sizes.begin(), 9);
  EXPECT_EQ(*sizes.rbegin(), 29);
  const double neighbours = static_cast<double>(batch->nnz() - batch->rows()) / static_cast<double>(batch->rows());
  EXPECT_NEAR(neighbours, 2.1, 0.02);
}

TEST(GeneratedBatchTest, RefusesWrongArguments) {
  const auto refusal = [](const char* specification) {
    return error_of([&] { open_batch(specification); }, ErrorKind::usage);
  };
  EXPECT_SAYS(refusal("batch:dims=3"), "batch has no parameter \"dims\"", "did you mean dim?");
  EXPECT_SAYS(refusal("molecules:cuont=3"), "did you mean count?");
  EXPECT_SAYS(refusal("molecule:count=3"), "did you mean molecules?");
  for (const char* dim : {"batch:dim=5-3", "batch:dim=-3", "batch:dim=3-", "batch:dim=x", "batch:dim=1-2-3",
                          "batch:dim=", "batch:dim=3-9999999999"})
    EXPECT_SAYS(refusal(dim), "dim must be a whole number or a range A-B from 0 to");
  EXPECT_SAYS(refusal("batch:count=-1"), "count must be a whole number");
  EXPECT_SAYS(refusal("batch:count=1000000000,dim=1000000000,row_nnz=1000000000"), "2^60");
}

}  // namespace
}  // namespace shardmat
