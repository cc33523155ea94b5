#include "kernels/matrix/locality.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/matrix/ordering.h"
#include "kernels/matrix/runs.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

using Columns = std::vector<std::int64_t>;

double by_hand(const Columns& columns, int low_bits) {
  Columns emitted;
  std::int64_t count = 0;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (k > 0 && columns[k] >> low_bits != columns[k - 1] >> low_bits) {
      emitted.push_back(count);
      count = 0;
    }
    ++count;
  }
  if (count > 0) emitted.push_back(count);
  if (emitted.empty()) return 0;
  const std::int64_t sum = std::accumulate(emitted.begin(), emitted.end(), std::int64_t{0});
  return static_cast<double>(sum) / static_cast<double>(emitted.size());
}

TEST(ColumnLocalities, MeansTheCountsEmittedAtEachChangeOfLine) {
  // Lines of 32: 0 0 0 | 1 1 | 0 | 3 3 3 3: counts 3, 2, 1, 4.
  const Columns columns{0, 5, 31, 32, 63, 31, 96, 127, 100, 99};
  EXPECT_DOUBLE_EQ(column_locality(columns, line_bits(ValueType::f32)), 10.0 / 4);
  // Lines of 16: 0 0 | 1 | 2 | 3 | 1 | 6 | 7 | 6 6: counts 2, 1, 1, 1, 1, 1, 1, 2.
  EXPECT_DOUBLE_EQ(column_locality(columns, line_bits(ValueType::f64)), 10.0 / 8);
  const std::vector<std::int32_t> narrow(columns.begin(), columns.end());
  EXPECT_DOUBLE_EQ(column_locality(narrow, 5), 10.0 / 4);
  EXPECT_DOUBLE_EQ(column_locality(columns, 0), 1);
  EXPECT_DOUBLE_EQ(column_locality(columns, 7), 10);
}

TEST(ColumnLocalities, OfNothingIsZeroAndOfOneEntryOne) {
  EXPECT_EQ(column_locality(Columns{}, 5), 0);
  EXPECT_EQ(column_locality(Columns{77}, 5), 1);
  EXPECT_EQ(column_locality(CsrView{}, 5), 0);
}

TEST(ColumnLocalities, RunsOverTheEndsOfRows) {
  HostCsr m{3, 64, {0, 2, 2, 4}, {1, 40, 41, 2}, {1, 1, 1, 1}};  // 1 | 40 41 | 2
  EXPECT_DOUBLE_EQ(column_locality(m.view(), 5), 4.0 / 3);
  EXPECT_DOUBLE_EQ(column_locality(m.view(), 5, Columns{2, 1, 0}), 4.0 / 3);  // 41 | 2 1 | 40
  m.col_idx = {1, 2, 40, 41};
  EXPECT_DOUBLE_EQ(column_locality(m.view(), 5, Columns{2, 0, 1}), 4.0 / 2);
}

TEST(ColumnLocalities, IsTheSameOnAnyNumberOfThreads) {
  Columns columns(1000000);
  for (std::size_t k = 0; k < columns.size(); ++k) columns[k] = static_cast<std::int64_t>((test::value_of(k / 3) + 1) * 500);
  EXPECT_DOUBLE_EQ(column_locality(columns, 5), by_hand(columns, 5));
  EXPECT_DOUBLE_EQ(column_locality(columns, 4), by_hand(columns, 4));
}

TEST(ColumnLocalities, IsTheSameInPieces) {
  Columns columns(1000);
  for (std::size_t k = 0; k < columns.size(); ++k) columns[k] = static_cast<std::int64_t>((test::value_of(k / 5) + 1) * 100);
  for (const std::size_t piece : {1u, 2u, 7u, 999u}) {
    ColumnLocality locality(5);
    for (std::size_t k = 0; k < columns.size(); k += piece) {
      locality.add(std::span(columns).subspan(k, std::min(piece, columns.size() - k)));
      locality.add({});
    }
    EXPECT_DOUBLE_EQ(locality.mean(), by_hand(columns, 5)) << piece;
  }
}

/// Columns of the pieces of `width`, the first of every piece, then the second …
Columns folded(const HostCsr& m, std::int64_t width) {
  std::vector<Columns> pieces;
  for (std::size_t i = 0; i + 1 < m.row_ptr.size(); ++i)
    for (std::int64_t k = m.row_ptr[i]; k < m.row_ptr[i + 1]; k += width)
      pieces.emplace_back(m.col_idx.begin() + k, m.col_idx.begin() + std::min(k + width, m.row_ptr[i + 1]));
  Columns columns;
  for (std::size_t place = 0; place < static_cast<std::size_t>(width); ++place)
    for (const Columns& piece : pieces)
      if (place < piece.size()) columns.push_back(piece[place]);
  return columns;
}

TEST(ColumnLocalities, OfFoldedRowsByHand) {
  // Rows 1 40 2 | 41 | 3 33, folded to width 2: pieces (1 40) (2) (41) (3 33), read 1 2 | 41 | 3 | 40 33.
  const HostCsr m{3, 64, {0, 3, 4, 6}, {1, 40, 2, 41, 3, 33}, HostVector<double>(6, 1)};
  EXPECT_DOUBLE_EQ(folded_column_locality(m.view(), 5, 2), 6.0 / 4);
  EXPECT_EQ(usual_fold_width(m.view()), 2);
  EXPECT_THROW(folded_column_locality(m.view(), 5, 0), Error);
}

TEST(ColumnLocalities, OfRunsFirstByHand) {
  // Rows 1 40 41 60 | 2 | 31 32: runs first, read 40 41 1 60 | 2 | 31 32; lines of 32 columns 1 1 0 1 | 0 | 0 1.
  const HostCsr m{3, 64, {0, 4, 5, 7}, {1, 40, 41, 60, 2, 31, 32}, HostVector<double>(7, 1)};
  EXPECT_DOUBLE_EQ(rbp_column_locality(m.view(), 5), 7.0 / 5);
}

TEST(ColumnLocalities, OfReorderedAndFoldedRowsIsThatOfTheStoredColumns) {
  std::vector<test::NamedMatrix> zoo = test::matrix_zoo();
  HostCsr many{200000, 4096, HostVector<std::int64_t>(200001), {}, {}};  // several ranges, whole stretches of empty rows
  many.row_ptr[0] = 0;
  for (std::int64_t i = 0; i < many.rows; ++i) {
    for (std::int64_t k = 0; i % 70000 < 30000 && k < i % 4; ++k) many.col_idx.push_back((i * 17 + k * 9) % 4096);
    many.row_ptr[static_cast<std::size_t>(i + 1)] = static_cast<std::int64_t>(many.col_idx.size());
  }
  many.values.resize(many.col_idx.size());
  zoo.push_back({"many rows", many});
  for (const auto& [name, m] : zoo) {
    const auto order = order_by_row_length(m.row_ptr);
    Columns columns;
    for (const std::int64_t row : order)
      columns.insert(columns.end(), m.col_idx.begin() + m.row_ptr[static_cast<std::size_t>(row)],
                     m.col_idx.begin() + m.row_ptr[static_cast<std::size_t>(row + 1)]);
    HostVector<std::int64_t> same(order.size());
    std::iota(same.begin(), same.end(), 0);
    for (const std::int64_t width : {std::int64_t{1}, std::int64_t{3}, usual_fold_width(m.view())})
      EXPECT_DOUBLE_EQ(folded_column_locality(m.view(), 5, width), by_hand(folded(m, width), 5)) << name << " " << width;
    Columns runs_first;
    for (std::int64_t row = 0; row < m.rows; ++row)
      for (const bool inside : {true, false})
        for (std::int64_t k = m.row_ptr[static_cast<std::size_t>(row)]; k < m.row_ptr[static_cast<std::size_t>(row + 1)];
             ++k)
          if (in_run(Rows(m.view()), row, k) == inside) runs_first.push_back(m.col_idx[static_cast<std::size_t>(k)]);
    EXPECT_DOUBLE_EQ(rbp_column_locality(m.view(), 5), by_hand(runs_first, 5)) << name;
    for (const int bits : {4, 5}) {
      EXPECT_DOUBLE_EQ(column_locality(m.view(), bits, order), by_hand(columns, bits)) << name;
      EXPECT_DOUBLE_EQ(column_locality(m.view(), bits, same), column_locality(m.view(), bits)) << name;
    }
  }
}

}  // namespace
}  // namespace shardmat
