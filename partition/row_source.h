// Anything that can produce the rows of a matrix range by range: a matrix in memory, a shard file, a generator.
// Partitioning, writing, loading and verification all work on this, so none of them needs the whole matrix.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

class RowSource {
 public:
  virtual ~RowSource() = default;

  virtual std::int64_t rows() const = 0;
  virtual std::int64_t cols() const = 0;

  /// What people call the matrix: a file name, or a generator's specification "elasticity:n=40,seed=1".
  virtual std::string name() const = 0;

  /// Nonzeros of rows [begin, end), one entry a row; cheaper than producing the rows.
  virtual HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const = 0;

  /// Rows [begin, end) with global columns, sorted and without duplicates; result.row_ptr[0] = 0.
  /// The same range always gives bit-identical rows, whatever ranges were asked for before.
  virtual HostCsr read_rows(std::int64_t begin, std::int64_t end) const = 0;
};

/// The rows of a matrix held in memory.
std::unique_ptr<RowSource> make_memory_source(std::shared_ptr<const HostCsr> matrix, std::string name);

}  // namespace shardmat
