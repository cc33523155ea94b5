// Small matrices for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernels/matrix/csr.h"
#include "partition/source/row_source.h"

namespace shardmat::test {

inline HostCsr from_rows(std::int64_t cols, const std::vector<std::vector<std::pair<std::int64_t, double>>>& rows) {
  HostCsr m;
  m.rows = static_cast<std::int64_t>(rows.size());
  m.cols = cols;
  for (const auto& row : rows) {
    for (const auto& [column, value] : row) m.col_idx.push_back(column), m.values.push_back(value);
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

/// Row lengths between 0 and `longest`, many of them 0; columns and values random.
inline HostCsr random_matrix(std::int64_t rows, std::int64_t cols, std::int64_t longest, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<std::pair<std::int64_t, double>>> entries(static_cast<std::size_t>(rows));
  for (auto& row : entries) {
    const std::int64_t length = random() % 4 == 0 ? 0 : static_cast<std::int64_t>(random() % (longest + 1));
    std::set<std::int64_t> columns;
    while (static_cast<std::int64_t>(columns.size()) < std::min(length, cols))
      columns.insert(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(cols)));
    for (const std::int64_t column : columns)
      row.emplace_back(column, static_cast<double>(random() % 1000000) / 1024.0 - 300);
  }
  return from_rows(cols, entries);
}

inline std::unique_ptr<RowSource> source_of(const HostCsr& matrix, const std::string& name = "test") {
  return make_memory_source(std::make_shared<const HostCsr>(matrix), name);
}

inline bool same(const HostCsr& a, const HostCsr& b) {
  return a.rows == b.rows && a.cols == b.cols && a.row_ptr == b.row_ptr && a.col_idx == b.col_idx && a.values == b.values;
}

/// Widths of the arrays that rows are read into.
struct Widths {
  bool wide_columns, wide_values;
};

/// Rows from `begin` on by read_rows_into(): row order[i] of them comes i-th.
inline HostCsr read_into(const RowSource& source, std::int64_t begin, const std::vector<std::int64_t>& order,
                         Widths widths) {
  const auto lengths = source.row_lengths(begin, begin + std::ssize(order));
  HostCsr m;
  m.rows = std::ssize(order), m.cols = source.cols();
  std::vector<std::int64_t> places(order.size());
  for (const std::int64_t row : order) {
    places[static_cast<std::size_t>(row)] = m.row_ptr.back();
    m.row_ptr.push_back(m.row_ptr.back() + lengths[static_cast<std::size_t>(row)]);
  }
  const auto nnz = static_cast<std::size_t>(m.nnz());
  m.col_idx.assign(nnz, -7), m.values.assign(nnz, -7);
  std::vector<std::int32_t> columns(nnz, -7);
  std::vector<float> values(nnz, -7);
  RowTarget target{
      lengths, places, nullptr, nullptr, nullptr, nullptr, widths.wide_values ? ValueType::f64 : ValueType::f32};
  if (widths.wide_columns) target.wide_columns = m.col_idx.data();
  else target.narrow_columns = columns.data();
  if (widths.wide_values) target.wide_values = m.values.data();
  else target.narrow_values = values.data();
  source.read_rows_into(begin, target);
  if (!widths.wide_columns) m.col_idx.assign(columns.begin(), columns.end());
  if (!widths.wide_values) m.values.assign(values.begin(), values.end());
  return m;
}

/// What read_into() must give.
inline HostCsr rows_in_order(const HostCsr& m, std::int64_t begin, const std::vector<std::int64_t>& order,
                             bool wide_values) {
  HostCsr rows;
  rows.rows = std::ssize(order), rows.cols = m.cols;
  for (const std::int64_t i : order) {
    for (auto k = m.row_ptr[static_cast<std::size_t>(begin + i)]; k < m.row_ptr[static_cast<std::size_t>(begin + i + 1)];
         ++k) {
      const double value = m.values[static_cast<std::size_t>(k)];
      rows.col_idx.push_back(m.col_idx[static_cast<std::size_t>(k)]);
      rows.values.push_back(wide_values ? value : static_cast<double>(static_cast<float>(value)));
    }
    rows.row_ptr.push_back(std::ssize(rows.col_idx));
  }
  return rows;
}

/// Reads ranges of rows by read_rows_into(), in the order of the source and in another one, and compares them with `m`.
inline void expect_reads_into(const RowSource& source, const HostCsr& m) {
  for (const std::int64_t begin : {std::int64_t{0}, std::min<std::int64_t>(3, m.rows), m.rows / 2, m.rows})
    for (const std::int64_t end : {m.rows, (begin + m.rows) / 2})
      for (const bool reversed : {false, true})
        for (const Widths widths : {Widths{false, false}, {false, true}, {true, false}, {true, true}}) {
          if (!widths.wide_columns && m.cols > std::int64_t{1} << 31) continue;
          std::vector<std::int64_t> order(static_cast<std::size_t>(end - begin));
          std::iota(order.begin(), order.end(), std::int64_t{0});
          if (reversed) std::reverse(order.begin(), order.end());
          EXPECT_TRUE(same(read_into(source, begin, order, widths), rows_in_order(m, begin, order, widths.wide_values)))
              << source.name() << " rows " << begin << " to " << end << (reversed ? ", reversed" : "")
              << (widths.wide_columns ? ", wide columns" : "") << (widths.wide_values ? ", wide values" : "");
        }
}

/// A directory that is removed with everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "shardmat-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  /// Names of the files in it, ascending.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace shardmat::test
