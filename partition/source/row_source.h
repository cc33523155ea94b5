// The interface of everything that produces the rows of a matrix range by range: a matrix in memory, a shard file, a
// generator. Partitioning, writing, loading and verification use it, so none of them needs the whole matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/host_vector.h"
#include "kernels/base/progress.h"
#include "kernels/matrix/csr.h"
#include "partition/source/node_facts.h"
#include "partition/source/row_target.h"

namespace shardmat {

/// The order of the rows (and, in a square matrix, of the columns).
enum class RowOrder {
  as_source,  ///< the original order
  by_length,  ///< by descending length
  rcm,        ///< reverse Cuthill-McKee; square matrices only
  graph,      ///< by the parts of a graph partition; square matrices only
};
/// "source", "length", "rcm" or "graph".
std::string_view name(RowOrder order);
/// For people: "reverse Cuthill-McKee".
std::string_view title(RowOrder order);

/// Any process may read any rows, except from a source made by make_kept_source(): there, each rank may read only the rows
/// that it keeps.
class RowSource : public NodeFacts {
 public:
  virtual std::int64_t rows() const = 0;
  virtual std::int64_t cols() const = 0;

  /// The name of the matrix for people: a file name, or a generator's specification "elasticity:n=40,seed=1".
  virtual std::string name() const = 0;

  /// Number of nonzeros of each of the rows [begin, end); cheaper than reading the rows.
  virtual HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const = 0;

  /// Rows [begin, end) with global columns, sorted and without duplicates; result.row_ptr[0] = 0.
  /// The same range always gives bit-identical rows, whatever ranges were asked for before.
  virtual HostCsr read_rows(std::int64_t begin, std::int64_t end) const = 0;

  /// Calls use(view) with the rows of read_rows(); a matrix in memory passes its own arrays instead of a copy. The view is
  /// valid only during the call.
  virtual void visit_rows(std::int64_t begin, std::int64_t end, const std::function<void(const CsrView&)>& use) const;

  /// Writes the columns and values of the rows [begin, begin + target.lengths.size()) into the arrays of `target`. Takes
  /// memory for some slices of rows beside them. Throws Error(input) if a row has another length than the target says, and
  /// as require_in_range() for values beyond the range of target.type; the arrays are undefined then.
  virtual void read_rows_into(std::int64_t begin, const RowTarget& target, const Progress& progress = {}) const;

  /// The best end, in (begin, end], of a range of rows that begins at `begin`. If rows are stored in blocks that should be
  /// read whole, this is the end of a block.
  virtual std::int64_t best_end(std::int64_t begin, std::int64_t end) const {
    static_cast<void>(begin);
    return end;
  }

  virtual RowOrder row_order() const { return RowOrder::as_source; }
  /// True if the rows come in another order than that of the original matrix (square: the columns, too).
  bool permuted() const { return row_order() != RowOrder::as_source; }
  /// The original row of each of the rows [begin, end).
  virtual HostVector<std::int64_t> permutation(std::int64_t begin, std::int64_t end) const;

  /// The unknowns of a node, which follow each other in the rows: what a file or an earlier look at the pattern says. 1 if
  /// nodes have one unknown, or none can be told; 0 if nobody looked.
  virtual std::int64_t node_block_size() const { return 0; }
};

/// The most entries in a slice when a matrix is streamed: 64 MB. A longer row is a slice by itself.
constexpr std::int64_t kSliceEntries = std::int64_t{1} << 22;

/// The row pointers of the whole matrix (prefix sums of the row lengths): rows + 1 entries, the first 0. Throws Error(input)
/// for an impossible row length.
HostVector<std::int64_t> read_row_pointers(const RowSource& source, const Progress& progress = {});

/// Calls use(first_row, view) for consecutive ranges of the rows [begin, end), each of at most kSliceEntries rows and
/// nonzeros. With a `multiple` above 1, ranges begin at `begin` plus multiples of it, and may have up to `multiple` rows
/// more.
void for_each_row_slice(const RowSource& source, std::int64_t begin, std::int64_t end,
                        const std::function<void(std::int64_t, const CsrView&)>& use, std::int64_t multiple = 1);

/// The rows of a matrix held in memory. `unknowns`: null, or one for each row.
std::unique_ptr<RowSource> make_memory_source(std::shared_ptr<const HostCsr> matrix, std::string name,
                                              std::shared_ptr<const UnknownList> unknowns = nullptr);

}  // namespace shardmat
