// What the tests of generators ask of every matrix.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/matrix/csr.h"
#include "partition/generators/generator.h"

namespace shardmat {

inline HostCsr all_rows(const RowSource& source) { return source.read_rows(0, source.rows()); }
inline HostCsr generate(const std::string& specification) { return all_rows(*make_generator(specification)); }

inline double entry(const HostCsr& m, std::int64_t row, std::int64_t col) {
  for (auto k = static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(row)]);
       k < static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(row) + 1]); ++k)
    if (m.col_idx[k] == col) return m.values[k];
  return 0;
}

inline std::vector<double> multiply(const HostCsr& m, const std::vector<double>& x) {
  std::vector<double> y(static_cast<std::size_t>(m.rows));
  for (std::size_t i = 0; i < y.size(); ++i)
    for (auto k = static_cast<std::size_t>(m.row_ptr[i]); k < static_cast<std::size_t>(m.row_ptr[i + 1]); ++k)
      y[i] += m.values[k] * x[static_cast<std::size_t>(m.col_idx[k])];
  return y;
}

inline double largest(const std::vector<double>& x) {
  double result = 0;
  for (const double v : x) result = std::max(result, std::abs(v));
  return result;
}

inline double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

/// Valid, right shape, row_lengths() agrees, and pieces of uneven sizes equal the whole bit for bit.
inline void expect_sound(const RowSource& source) {
  SCOPED_TRACE(source.name());
  const HostCsr whole = all_rows(source);
  ASSERT_EQ(whole.rows, source.rows());
  ASSERT_EQ(whole.cols, source.cols());
  validate(whole.view());
  const HostVector<std::int64_t> lengths = source.row_lengths(0, source.rows());
  for (std::size_t i = 0; i < lengths.size(); ++i) ASSERT_EQ(lengths[i], whole.row_ptr[i + 1] - whole.row_ptr[i]);
  std::int64_t step = 1;
  for (std::int64_t begin = 0; begin < source.rows(); step = step * 3 % 1009) {
    const std::int64_t end = std::min(source.rows(), begin + step);
    const HostCsr part = source.read_rows(begin, end);
    ASSERT_EQ(part.rows, end - begin);
    const auto first = whole.row_ptr[static_cast<std::size_t>(begin)];
    ASSERT_EQ(part.nnz(), whole.row_ptr[static_cast<std::size_t>(end)] - first);
    ASSERT_TRUE(std::equal(part.col_idx.begin(), part.col_idx.end(), whole.col_idx.begin() + first));
    ASSERT_TRUE(std::equal(part.values.begin(), part.values.end(), whole.values.begin() + first));
    const HostVector<std::int64_t> some = source.row_lengths(begin, end);
    ASSERT_TRUE(std::equal(some.begin(), some.end(), lengths.begin() + begin));
    begin = end;
  }
  const HostCsr none = source.read_rows(source.rows(), source.rows());
  EXPECT_EQ(none.rows, 0);
  EXPECT_EQ(none.nnz(), 0);
}

/// A(i, j) and A(j, i) have the same bits.
inline void expect_symmetric(const HostCsr& m) {
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (auto k = m.row_ptr[static_cast<std::size_t>(i)]; k < m.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
      const std::int64_t j = m.col_idx[static_cast<std::size_t>(k)];
      ASSERT_EQ(m.values[static_cast<std::size_t>(k)], entry(m, j, i)) << "entry " << i << ", " << j;
    }
}

/// The message of the Error of this kind that f throws.
template <class F>
std::string message_of(ErrorKind kind, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

}  // namespace shardmat
