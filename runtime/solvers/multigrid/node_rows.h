// A rank's rows of a sparse matrix of dense blocks in host memory: what the set-up of multigrid works on.
//
// Threads: values; one thread at a time changes them. Collective functions say so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/base/host_vector.h"
#include "runtime/solvers/multigrid/nodes.h"

namespace shardmat::multigrid {

/// Rows by node. Block k couples a node of row_size unknowns with one of col_size; row-major.
struct NodeRows {
  int row_size = 1, col_size = 1;
  std::shared_ptr<const Nodes> rows, cols;  ///< one object if the matrix is square
  HostVector<std::int64_t> start{0};
  HostVector<std::int32_t> column;  ///< local numbers of cols, ascending in each row
  HostVector<double> value;

  std::int64_t count() const { return std::ssize(start) - 1; }
  std::int64_t blocks() const { return std::ssize(column); }
  std::int64_t block_entries() const { return std::int64_t{row_size} * col_size; }
  const double* block(std::int64_t k) const { return value.data() + k * block_entries(); }
  double* block(std::int64_t k) { return value.data() + k * block_entries(); }
  /// The block of row `i` in column `column`; -1: none.
  std::int64_t find(std::int64_t i, std::int32_t column) const;
};

/// The rows as lists of columns with global numbers.
Lists to_lists(const NodeRows& m);
/// Lists with global columns as rows; `starts`: of the nodes of the columns. Columns may be in any order; where one comes
/// twice in a row, its blocks are added in the order in which they come. Collective.
NodeRows from_lists(const Lists& lists, int row_size, int col_size, std::shared_ptr<const Nodes> rows,
                    const std::vector<std::int64_t>& starts);
/// As from_lists(), with the columns of a square matrix.
NodeRows square_from_lists(const Lists& lists, int size, const std::vector<std::int64_t>& starts, Communicator& ranks);

/// The rows of `m`, then those of the ghosts of `nodes`, which has the rows of `m` and may have other ghosts. The columns
/// have further ghosts; the first m.count() rows keep their order. On one rank it is `m` itself, which must stay.
class WithGhostRows {
 public:
  /// Collective.
  WithGhostRows(const NodeRows& m, const std::shared_ptr<const Nodes>& nodes);
  const NodeRows& operator*() const { return all_ ? *all_ : m_; }

 private:
  const NodeRows& m_;
  std::optional<NodeRows> all_;
};

/// Where the blocks of each column stand, in ascending order of their rows. Columns are own ones and ghosts.
struct ByColumn {
  HostVector<std::int64_t> start;
  HostVector<std::int32_t> row;
  HostVector<std::int64_t> block;
};
ByColumn by_column(const NodeRows& m);

/// mᵀ; `columns`: by_column(m). Collective.
NodeRows transposed(const NodeRows& m, const ByColumn& columns);

/// Inverses of the blocks on the diagonal of a square matrix, one a row; singular ones are inverted along the directions in
/// which they are regular (pseudo-inverse of a symmetric block). Not collective.
HostVector<double> inverse_diagonal(const NodeRows& m);

}  // namespace shardmat::multigrid
