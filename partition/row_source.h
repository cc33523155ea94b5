// Anything that can produce the rows of a matrix range by range: a matrix in memory, a shard file, a
// generator. Partitioning, writing, loading and verification all work on this, so none of them needs the
// whole matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/host_vector.h"
#include "kernels/base/progress.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// In which order rows come (and, of a square matrix, columns).
enum class RowOrder {
  as_source,  ///< the original one
  by_length,  ///< descending
  rcm,        ///< reverse Cuthill-McKee; square matrices only
  graph,      ///< part after part of its graph; square matrices only
};
/// "source", "length", "rcm" or "graph".
std::string_view name(RowOrder order);
/// For people: "reverse Cuthill-McKee".
std::string_view title(RowOrder order);

/// Any process may ask for any rows, except of the source that make_kept_source() makes: each rank may ask it only for the
/// rows that it keeps.
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

  /// Calls use(view) with what read_rows gives; a matrix in memory shows its own arrays instead of copying
  /// them. The view lives as long as the call.
  virtual void visit_rows(std::int64_t begin, std::int64_t end, const std::function<void(const CsrView&)>& use) const;

  /// Where in (begin, end] a range of rows that begins at `begin` ends best: at the end of a block, where rows are stored in
  /// blocks that are best read whole.
  virtual std::int64_t best_end(std::int64_t begin, std::int64_t end) const {
    static_cast<void>(begin);
    return end;
  }

  virtual RowOrder row_order() const { return RowOrder::as_source; }
  /// True if the rows come in another order than that of the original matrix (square: the columns, too).
  bool permuted() const { return row_order() != RowOrder::as_source; }
  /// The original row of each of the rows [begin, end).
  virtual HostVector<std::int64_t> permutation(std::int64_t begin, std::int64_t end) const;
};

/// Entries that the rows of one slice hold where matrices are streamed: 64 MB. A longer row makes a slice of
/// its own.
constexpr std::int64_t kSliceEntries = std::int64_t{1} << 22;

/// The sums of the lengths of all rows: rows + 1 entries, the first 0. Throws Error(input) for a length that a
/// row cannot have.
HostVector<std::int64_t> read_row_pointers(const RowSource& source, const Progress& progress = {});

/// Calls use(first_row, view) for consecutive ranges of the rows [begin, end), each of at most kSliceEntries
/// rows and nonzeros. With a `multiple` above 1 ranges begin at `begin` plus multiples of it, and may be larger
/// by as many rows.
void for_each_slice(const RowSource& source, std::int64_t begin, std::int64_t end,
                    const std::function<void(std::int64_t, const CsrView&)>& use, std::int64_t multiple = 1);

/// The rows of a matrix held in memory.
std::unique_ptr<RowSource> make_memory_source(std::shared_ptr<const HostCsr> matrix, std::string name);

}  // namespace shardmat
