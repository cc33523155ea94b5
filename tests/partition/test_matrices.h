// Small matrices for the tests of this folder.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernels/matrix/csr.h"
#include "partition/row_source.h"

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
