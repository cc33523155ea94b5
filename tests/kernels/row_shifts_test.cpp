// The matrix of each row of a batch as it is looked up on a GPU, and the place of its columns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "kernels/batched/batch.h"
#include "kernels/batched/descriptor.h"
#include "kernels/batched/matrix_of.h"

namespace shardmat {
namespace {

TEST(RowShifts, FindsTheMatrixOfARow) {
  const auto check = [](const std::vector<std::int64_t>& first_row, const std::vector<std::int64_t>& first_col,
                        bool one_shape) {
    const BatchOffsets at(first_row, first_col, first_row);
    std::vector<std::int32_t> words{7, 7, 7};  // something before
    const batched::RowShifts shifts(words, at);
    EXPECT_EQ(shifts.one_shape(), one_shape);
    EXPECT_EQ(words.size() == 3, one_shape);
    const auto rows = static_cast<std::int32_t>(at.rows());
    for (std::size_t i = 1; i < at.first_row.size(); ++i)
      for (const std::int32_t row :
           {at.first_row[i - 1], at.first_row[i] - 1, at.first_row[i - 1] / 2 + at.first_row[i] / 2}) {
        if (row < 0) continue;
        const auto matrix = static_cast<std::size_t>(
            batched::matrix_of(std::min(row, rows - 1), at.first_row.data(), static_cast<std::int32_t>(at.count())));
        ASSERT_EQ(shifts.look_up(words.data(), row), at.first_col[matrix]) << row << " of " << rows;
      }
    EXPECT_EQ(shifts.look_up(words.data(), rows + 4000), shifts.look_up(words.data(), rows - 1));
  };
  const auto multiples = [](std::int64_t count, std::int64_t step) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i <= count; ++i) all.push_back(i * step);
    return all;
  };
  for (const std::int64_t rows : {1, 2, 3, 5, 7, 63, 64, 65, 1000, 65537, 1'000'003, 715'827'882, 2'147'479'551}) {
    const std::int64_t count = std::min<std::int64_t>(3000, BatchOffsets::most / rows);
    check(multiples(count, rows), multiples(count, std::min<std::int64_t>(rows, 9)), true);
  }
  std::mt19937 random(17);
  for (const auto& [most, count] : {std::pair{1u, 150}, {3u, 250}, {200u, 100}, {3u, 700}, {200u, 3000}}) {
    std::vector<std::int64_t> rows{0, 0, 0}, cols{0, 4, 4};
    for (int i = 0; i < count; ++i) {
      rows.push_back(rows.back() + (i % 50 < 10 ? 0 : random() % (most + 1)));
      cols.push_back(cols.back() + random() % 4);
    }
    check(rows, rows, false);
    check(rows, cols, false);
    rows.push_back(rows.back() + 20'000);  // one matrix with most of the rows
    for (int i = 0; i < 300; ++i) rows.push_back(rows.back() + 1);
    check(rows, rows, false);
  }
}

}  // namespace
}  // namespace shardmat
