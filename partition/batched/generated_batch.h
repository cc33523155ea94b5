// The base class of all generated batches. Matrix i depends only on the seed and i, so that any rank can make any range.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "partition/batched/batch_source.h"

namespace shardmat {

class GeneratedBatch : public BatchSource {
 protected:
  struct Shape {
    std::int64_t rows, cols, nnz;
  };
  /// Where fill() writes.
  struct Target {
    std::int64_t* row_ends;  ///< rows entries: where each row ends, counted from the first entry of the matrix
    std::int32_t* col_idx;   ///< nnz entries
    double* values;          ///< nnz entries
  };

  /// The constructor of a derived class ends with count_up().
  explicit GeneratedBatch(std::string name) : BatchSource(std::move(name)) {}
  void count_up(std::int64_t count);

 private:
  virtual Shape shape(std::int64_t matrix) const = 0;
  /// Called from several threads.
  virtual void fill(std::int64_t matrix, const Shape& shape, const Target& target) const = 0;

  BatchSizes sizes_of(std::int64_t begin, std::int64_t end) const final;
  HostBatch read_range(std::int64_t begin, std::int64_t end) const final;
};

}  // namespace shardmat
