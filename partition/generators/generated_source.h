// What all generated matrices share: the check of a row range, and the arrays laid out from the row lengths.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "partition/row_source.h"

namespace shardmat {

class GeneratedSource : public RowSource {
 public:
  GeneratedSource(std::string name, std::int64_t rows, std::int64_t cols)
      : name_(std::move(name)), rows_(rows), cols_(cols) {}

  std::int64_t rows() const final { return rows_; }
  std::int64_t cols() const final { return cols_; }
  std::string name() const final { return name_; }
  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const final;
  HostCsr read_rows(std::int64_t begin, std::int64_t end) const final;

 protected:
  /// lengths[i] = entries that fill() will write for row begin + i. The range is checked. Called from one
  /// thread; to use several is its own affair, as for fill().
  virtual void count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const = 0;
  /// Writes columns and values of rows [begin, end); row_ptr is set and the arrays have their size. A
  /// generator may leave rows unsorted and with duplicates if it then sorts them itself, which may shrink
  /// them.
  virtual void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const = 0;
  /// Row pointers for fill(); by default from count().
  virtual void lay_out(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const { count(begin, end, lengths); }

 private:
  void check(std::int64_t begin, std::int64_t end) const;

  std::string name_;
  std::int64_t rows_;
  std::int64_t cols_;
};

}  // namespace shardmat
