// What one pass over the rows tells of the diagonal: by a plain loop, on the host and on a GPU.
#include "kernels/diagonal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/conversion.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/upload.h"
#include "kernels/matrix/compact_csr.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

struct Expected {
  DiagonalExtremes extremes;
  std::vector<DiagonalAndOthers> rows;
  std::vector<double> entries;
};

Expected by_a_plain_loop(const HostCsr& m, std::int64_t first, ValueType type) {
  Expected e;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    double entry = 0;
    DiagonalAndOthers row;
    for (auto k = static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(i) + 1]); ++k) {
      const double value = type == ValueType::f32 ? static_cast<float>(m.values[k]) : m.values[k];
      if (m.col_idx[k] == first + i) entry = value, row.diagonal = std::abs(value);
      else row.others = std::max(row.others, std::abs(value));
    }
    DiagonalExtremes& x = e.extremes;
    x.lowest = std::min(x.lowest, std::isnan(entry) ? -std::numeric_limits<double>::infinity() : entry);
    if (row.diagonal < x.least) x.least = row.diagonal;
    if (row.diagonal > 0 && row.diagonal < x.least_not_0) x.least_not_0 = row.diagonal;
    if (row.diagonal > 1e8 * row.others && row.diagonal > x.most) x.most = row.diagonal;
    e.rows.push_back(row), e.entries.push_back(entry);
  }
  return e;
}

/// The zoo; and rows with huge, negative, missing and undefined diagonals, short and long.
std::vector<test::NamedMatrix> matrices() {
  std::vector<test::NamedMatrix> all = test::matrix_zoo();
  for (const std::int64_t width : {2, 70}) {
    HostCsr m;
    m.rows = m.cols = 3000;
    for (std::int64_t i = 0; i < m.rows; ++i) {
      for (std::int64_t j = i; j < std::min(m.cols, i + width); ++j) {
        if (i % 500 == 99 && j == i) continue;  // no diagonal
        m.col_idx.push_back(j);
        const double usual = test::value_of(static_cast<std::uint64_t>(i * 97 + j));
        m.values.push_back(j != i ? usual : i == 1234 ? 1e30 : 2 + usual);
      }
      m.row_ptr.push_back(std::ssize(m.col_idx));
    }
    all.push_back({"penalty row", m});
    for (std::int64_t i = 0; i < m.rows; ++i) {
      const auto k = static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(i)]);
      if (i == 7) m.values[k] = -3;
      if (m.col_idx[k] == i && i % 2 == 0) m.values[k] = 0;
    }
    all.push_back({"negative and zero diagonals", m});
    m.values[static_cast<std::size_t>(m.row_ptr[11])] = std::numeric_limits<double>::quiet_NaN();
    all.push_back({"undefined diagonal", m});
  }
  return all;
}

void expect_same(const DiagonalExtremes& found, const DiagonalExtremes& expected) {
  EXPECT_EQ(found.lowest, expected.lowest);
  EXPECT_EQ(found.least, expected.least);
  EXPECT_EQ(found.least_not_0, expected.least_not_0);
  EXPECT_EQ(found.most, expected.most);
}

TEST(Diagonal, ExtremesAndRowsAreThoseOfAPlainLoop) {
  for (const auto& [name, matrix] : matrices())
    for (const ValueType type : {ValueType::f64, ValueType::f32})
      for (const std::int64_t first : {0, 3}) {
        SCOPED_TRACE(name);
        const CompactCsr compact(matrix.view(), type);
        const Expected expected = by_a_plain_loop(matrix, first, type);
        std::vector<DiagonalAndOthers> rows(static_cast<std::size_t>(matrix.rows));
        expect_same(diagonal_extremes(compact.view(), first, rows.data()), expected.extremes);
        expect_same(diagonal_extremes(compact.view(), first, nullptr), expected.extremes);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          EXPECT_EQ(rows[i].others, expected.rows[i].others) << i;
          if (!std::isnan(expected.rows[i].diagonal)) {
            EXPECT_EQ(rows[i].diagonal, expected.rows[i].diagonal) << i;
          }
        }
      }
}

TEST(GpuDiagonal, ExtremesAndEntriesAreThoseOfTheHost) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream({Backend::cuda, 0});
  for (const auto& [name, matrix] : matrices())
    for (const ValueType type : {ValueType::f64, ValueType::f32})
      for (const std::int64_t first : {0, 3}) {
        SCOPED_TRACE(name);
        const CompactCsr compact(matrix.view(), type);
        const Expected expected = by_a_plain_loop(matrix, first, type);
        ConversionInput input(compact.view(), type, stream);
        const std::shared_ptr<CsrStorage> on_device = input.csr();
        expect_same(diagonal_extremes(*on_device, first, stream), expected.extremes);
        const Buffer entries(stream.device(), static_cast<std::size_t>(matrix.rows) * size_of(type));
        copy_diagonal(*on_device, first, entries.data(), stream);
        std::vector<double> found;
        if (type == ValueType::f64) found = download<double>(entries, stream);
        else
          for (const float entry : download<float>(entries, stream)) found.push_back(entry);
        ASSERT_EQ(found.size(), expected.entries.size());
        for (std::size_t i = 0; i < found.size(); ++i)
          if (!std::isnan(expected.entries[i])) {
            EXPECT_EQ(found[i], expected.entries[i]) << i;
          }
      }
}

}  // namespace
}  // namespace shardmat
