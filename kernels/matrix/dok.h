// A matrix as a dictionary of keys (DOK): entries are inserted, added to, read and erased in any order, then turned into
// CSR. For construction by hand. Many entries at once, as of finite elements, are assembled faster by
// sort_rows_and_sum_duplicates().
#pragma once

#include <cstdint>
#include <unordered_map>

#include "kernels/matrix/csr.h"

namespace shardmat {

class DokMatrix {
 public:
  /// An empty matrix. Throws Error(usage) for a negative size.
  DokMatrix(std::int64_t rows, std::int64_t cols);
  /// The entries of a valid matrix.
  explicit DokMatrix(const CsrView& matrix);

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  std::int64_t nnz() const { return static_cast<std::int64_t>(entries_.size()); }

  /// All of these throw Error(usage), which names the place, for a row or column outside the matrix.
  /// Sets an entry, also to 0: it is stored until erase().
  void insert(std::int64_t row, std::int64_t column, double value);
  /// Adds to an entry, which need not exist.
  void add(std::int64_t row, std::int64_t column, double value);
  /// Returns whether there was an entry.
  bool erase(std::int64_t row, std::int64_t column);
  bool contains(std::int64_t row, std::int64_t column) const;
  /// The value of an entry; 0 where there is none.
  double at(std::int64_t row, std::int64_t column) const;

  /// Columns ascend in each row. O(nnz log(longest row)) time; 24 bytes a nonzero and 8 a row besides the dictionary.
  HostCsr to_csr() const;

 private:
  struct Key {
    std::int64_t row, column;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  void require_inside(std::int64_t row, std::int64_t column) const;

  std::int64_t rows_, cols_;
  std::unordered_map<Key, double, Hash> entries_;
};

}  // namespace shardmat
