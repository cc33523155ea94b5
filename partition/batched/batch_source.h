// The interface of everything that produces a batch of small sparse matrices range by range: a batch in memory, a batch
// file, a collection of graphs, a generator. It is used to spread a batch over ranks, to cut it into chunks, and to write
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/base/host_vector.h"
#include "kernels/batched/batch.h"
#include "partition/source/row_source.h"

namespace shardmat {

/// One entry for each matrix.
struct BatchSizes {
  HostVector<std::int64_t> rows, cols, nnz;
};

/// Sums over all matrices.
struct BatchTotals {
  std::int64_t count = 0, rows = 0, cols = 0, nnz = 0;

  /// Adds the matrices to the sums.
  void add(const BatchSizes& sizes);
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  std::int64_t count() const { return totals_.count; }
  std::int64_t rows() const { return totals_.rows; }
  std::int64_t cols() const { return totals_.cols; }
  std::int64_t nnz() const { return totals_.nnz; }
  /// The name of the batch for people: a file or folder, or a generator's specification "batch:dim=64,seed=1".
  const std::string& name() const { return name_; }

  /// Sizes of the matrices [begin, end); cheaper than reading them.
  BatchSizes sizes(std::int64_t begin, std::int64_t end) const;
  /// Reads and validates matrices [begin, end). A matrix is bit-identical in every range, whatever was read before. Throws
  /// Error(input) with the source, the matrix and its entry, both counted from 0.
  HostBatch read(std::int64_t begin, std::int64_t end) const;

 protected:
  explicit BatchSource(std::string name, BatchTotals totals = {}) : name_(std::move(name)), totals_(totals) {}
  /// For sources that count in their constructor.
  void set_totals(const BatchTotals& totals) { totals_ = totals; }

 private:
  void require_range(std::int64_t begin, std::int64_t end) const;
  // Called with 0 ≤ begin < end ≤ count().
  virtual BatchSizes sizes_of(std::int64_t begin, std::int64_t end) const = 0;
  virtual HostBatch read_range(std::int64_t begin, std::int64_t end) const = 0;

  std::string name_;
  BatchTotals totals_;
};

/// Calls use(begin, end) for consecutive ranges that together cover [begin, end). A range has at most `most` matrices, rows,
/// columns and nonzeros; a larger matrix is a range by itself.
void for_each_chunk(const BatchSource& source, std::int64_t begin, std::int64_t end,
                    const std::function<void(std::int64_t, std::int64_t)>& use, std::int64_t most = kSliceEntries);

/// Validates the batch: throws Error(input) starting with `name`.
std::unique_ptr<BatchSource> make_memory_batch(std::shared_ptr<const HostBatch> batch, std::string name);

/// The choice of values for the edges of graphs.
struct EdgeValues {
  bool unweighted = false;     ///< 1 for every edge, whatever weights the source has
  std::int64_t attribute = 0;  ///< the column of a TUDataset's edge attributes, counted from 1; 0: the only one

  bool chosen() const { return unweighted || attribute > 0; }
};

/// A kind of source for batches: one line in the list in batch_source.cpp.
struct BatchKind {
  std::string_view name;  ///< "tudataset"
  std::string_view help;  ///< one line: which argument to give
  bool (*accepts)(const std::string& argument);
  std::unique_ptr<BatchSource> (*open)(const std::string& argument, const EdgeValues& edges);
};
std::span<const BatchKind> batch_kinds();

/// Opens the argument as the first kind that accepts it. Throws Error(input) for a missing or malformed source, or if no
/// kind accepts it; Error(usage) for a wrong generator specification (as make_generator()), and for a choice of edge values
/// if the source offers none.
std::unique_ptr<BatchSource> open_batch(const std::string& argument, const EdgeValues& edges = {});

}  // namespace shardmat
