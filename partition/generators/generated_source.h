// The base class of all generated matrices: checks row ranges, and allocates the arrays from the row lengths.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "partition/source/row_source.h"

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
  /// Sets lengths[i] to the number of entries that fill() will write for row begin + i. The range is valid. Called from one
  /// thread; count() and fill() may start threads themselves.
  virtual void count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const = 0;
  /// Writes columns and values of rows [begin, end); row_ptr is set and the arrays are allocated. A generator may write
  /// unsorted rows with duplicates, if it then sorts them itself, which may shrink the arrays.
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
