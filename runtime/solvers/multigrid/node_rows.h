// A rank's rows of a sparse matrix of dense blocks in host memory: what the set-up of multigrid works on.
//
// Threads: values; one thread at a time changes them. Collective functions say so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/base/host_vector.h"
#include "kernels/base/parallel.h"
#include "kernels/host/lanes.h"
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
  /// Of parallel_ranges() over the rows, where each value is looked at.
  std::int64_t grain() const { return grain_of(count(), blocks() * block_entries()); }
  const double* block(std::int64_t k) const { return value.data() + k * block_entries(); }
  double* block(std::int64_t k) { return value.data() + k * block_entries(); }
  /// The block of row `i` in column `column`; -1: none.
  std::int64_t find(std::int64_t i, std::int32_t column) const;
};

/// Lists with global columns as rows; `starts`: of the nodes of the columns. Columns may be in any order; where one comes
/// twice in a row, its blocks are added in the order in which they come. Collective.
NodeRows from_lists(const Lists& lists, int row_size, int col_size, std::shared_ptr<const Nodes> rows,
                    const std::vector<std::int64_t>& starts);
/// As from_lists(), with the columns of a square matrix.
NodeRows square_from_lists(const Lists& lists, int size, const std::vector<std::int64_t>& starts, Communicator& ranks);

/// The rows of `m`, which must stay, and those of the ghosts of `nodes`, which has the rows of `m` and may have other
/// ghosts.
class WithGhostRows {
 public:
  /// Collective.
  WithGhostRows(const NodeRows& m, const std::shared_ptr<const Nodes>& nodes);
  /// The columns of all these rows: those of `m`, and further ghosts.
  const std::shared_ptr<const Nodes>& cols() const { return cols_; }
  int col_size() const { return own_.col_size; }
  /// Blocks of all these rows.
  std::int64_t blocks() const { return own_.blocks() + of_ghosts_.blocks(); }
  std::int64_t count() const { return own_.count() + of_ghosts_.count(); }

  /// Calls use(column, block) for each block of row i of `nodes`. Columns of own rows are ascending. kEntries: of a block;
  /// 0: known at run time.
  template <int kEntries = 0, class Use>
  SHARDMAT_INLINE void each_block(std::int64_t i, const Use& use) const {
    const bool is_own = i < own_.count();
    const NodeRows& rows = is_own ? own_ : of_ghosts_;
    if (!is_own) i -= own_.count();
    // Copies: what `use` writes might be these members, for all that the compiler knows.
    const std::int64_t end = rows.start[at(i) + 1], entries = kEntries > 0 ? kEntries : rows.block_entries();
    const std::int32_t* const column = rows.column.data();
    const double* const value = rows.value.data();
    if (is_own && !number_.empty()) {
      const std::int32_t* const number = number_.data();
      for (std::int64_t k = rows.start[at(i)]; k < end; ++k) use(number[column[k]], value + k * entries);
    } else {
      for (std::int64_t k = rows.start[at(i)]; k < end; ++k) use(column[k], value + k * entries);
    }
  }

 private:
  const NodeRows& own_;
  NodeRows of_ghosts_;
  std::shared_ptr<const Nodes> cols_;
  HostVector<std::int32_t> number_;  ///< in cols_, of the columns of `m`; empty: the same
};

/// Rows of all nodes of m.rows, ghosts included: those of ghosts go to their ranks and are added to the rows there, in the
/// order of the ranks. The columns may get other ghosts. `square`: the result has the same nodes as rows and columns.
/// Collective.
NodeRows brought_home(NodeRows m, bool square);

/// Where the blocks of each column stand, in ascending order of their rows. Columns are own ones and ghosts.
struct ByColumn {
  HostVector<std::int64_t> start;
  HostVector<std::int32_t> row;
  HostVector<std::int64_t> block;
};
ByColumn by_column(const NodeRows& m);

/// What this rank's rows of m are of mᵀ, with rows for all columns of m, ghosts included; `columns`: by_column(m).
/// Collective.
NodeRows transposed(const NodeRows& m, const ByColumn& columns);

/// Inverses of the blocks on the diagonal of a square matrix, one a row; singular ones are inverted along the directions in
/// which they are regular (pseudo-inverse of a symmetric block). Not collective.
HostVector<double> inverse_diagonal(const NodeRows& m);

}  // namespace shardmat::multigrid
