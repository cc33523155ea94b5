#include "partition/batched/graph_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "kernels/base/at.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kGraphsATask = 256;

/// The first diagonal entry of a row; the end of the row if it has none.
std::int64_t find_diagonal(const HostBatch& batch, std::int64_t stacked_row, std::int64_t row) {
  const auto begin = batch.col_idx.begin() + batch.row_ptr[at(stacked_row)];
  const auto end = batch.col_idx.begin() + batch.row_ptr[at(stacked_row + 1)];
  return std::find(begin, end, row) - batch.col_idx.begin();
}

bool has_diagonal(const HostBatch& batch, std::int64_t stacked_row, std::int64_t row) {
  return find_diagonal(batch, stacked_row, row) < batch.row_ptr[at(stacked_row + 1)];
}

/// Calls use(i, first_row, rows) for each matrix of the batch, in parallel.
template <class Use>
void for_each_matrix(const HostBatch& batch, const Use& use) {
  parallel_ranges(std::ssize(batch.first_row) - 1, kGraphsATask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      use(i, batch.first_row[at(i)], batch.first_row[at(i + 1)] - batch.first_row[at(i)]);
  });
}

/// Square matrices with a 1 where the diagonal has no entry, before the first larger column.
HostBatch with_self_loops(const HostBatch& batch) {
  HostBatch result;
  result.first_row = batch.first_row;
  result.first_col = batch.first_col;
  result.row_ptr.resize(batch.row_ptr.size());
  for_each_matrix(batch, [&](std::int64_t, std::int64_t first, std::int64_t rows) {
    for (std::int64_t row = 0; row < rows; ++row)
      result.row_ptr[at(first + row + 1)] = has_diagonal(batch, first + row, row) ? 0 : 1;
  });
  result.row_ptr[0] = 0;
  for (std::size_t row = 1, added = 0; row < result.row_ptr.size(); ++row) {
    added += static_cast<std::size_t>(result.row_ptr[row]);
    result.row_ptr[row] = batch.row_ptr[row] + static_cast<std::int64_t>(added);
  }
  result.col_idx.resize(at(result.row_ptr.back()));
  result.values.resize(at(result.row_ptr.back()));
  for_each_matrix(batch, [&](std::int64_t, std::int64_t first, std::int64_t rows) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t begin = batch.row_ptr[at(first + row)], end = batch.row_ptr[at(first + row + 1)];
      std::int64_t to = result.row_ptr[at(first + row)];
      const bool missing = result.row_ptr[at(first + row + 1)] - to > end - begin;
      std::int64_t larger = begin;
      while (larger < end && batch.col_idx[at(larger)] <= row) ++larger;
      const auto copy = [&](std::int64_t from, std::int64_t count) {
        std::copy_n(batch.col_idx.begin() + from, count, result.col_idx.begin() + to);
        std::copy_n(batch.values.begin() + from, count, result.values.begin() + to);
        to += count;
      };
      copy(begin, larger - begin);
      if (missing) {
        result.col_idx[at(to)] = static_cast<std::int32_t>(row);
        result.values[at(to++)] = 1;
      }
      copy(larger, end - larger);
    }
  });
  return result;
}

/// Adds 1 to the first diagonal entry of each row that has one.
void add_to_diagonal(HostBatch& batch) {
  for_each_matrix(batch, [&](std::int64_t, std::int64_t first, std::int64_t rows) {
    for (std::int64_t row = 0; row < rows; ++row)
      if (has_diagonal(batch, first + row, row)) batch.values[at(find_diagonal(batch, first + row, row))] += 1;
  });
}

/// Scales rows and columns of square matrices by the square roots of their row sums.
void normalise(HostBatch& batch, const std::string& source, std::int64_t first_matrix) {
  HostVector<double> scale(batch.row_ptr.size() - 1);
  parallel_ranges(std::ssize(scale), kGraphsATask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      scale[at(row)] = std::accumulate(batch.values.begin() + batch.row_ptr[at(row)],
                                       batch.values.begin() + batch.row_ptr[at(row + 1)], 0.0);
  });
  const auto wrong = std::find_if(scale.begin(), scale.end(), [](double sum) { return !(sum > 0 && std::isfinite(sum)); });
  if (wrong != scale.end()) {
    const std::int64_t row = wrong - scale.begin();
    const auto next = std::upper_bound(batch.first_row.begin(), batch.first_row.end(), row);
    throw Error(
        ErrorKind::input,
        fmt::format("{}: matrix {}, row {}: its sum in A + I is {}, but a row that is normalised must have a finite sum "
                    "above 0",
                    source, first_matrix + (next - batch.first_row.begin()) - 1, row - next[-1], *wrong));
  }
  for_each_matrix(batch, [&](std::int64_t, std::int64_t first, std::int64_t rows) {
    for (std::int64_t row = first; row < first + rows; ++row) scale[at(row)] = 1 / std::sqrt(scale[at(row)]);
    for (std::int64_t row = first; row < first + rows; ++row)
      for (std::int64_t k = batch.row_ptr[at(row)]; k < batch.row_ptr[at(row + 1)]; ++k)
        batch.values[at(k)] *= scale[at(row)] * scale[at(first + batch.col_idx[at(k)])];
  });
}

class TransformedBatch final : public BatchSource {
 public:
  TransformedBatch(std::shared_ptr<const BatchSource> source, const GraphOptions& options)
      : BatchSource(fmt::format("{} {}", source->name(), options.gcn_normalise ? "(GCN-normalised)" : "(self loops)")),
        source_(std::move(source)),
        normalise_(options.gcn_normalise),
        added_(at(source_->count())) {
    BatchTotals totals{source_->count(), source_->rows(), source_->cols(), source_->nnz()};
    for_each_chunk(*source_, 0, source_->count(), [&](std::int64_t begin, std::int64_t end) {
      const HostBatch chunk = source_->read(begin, end);
      require_square(begin, chunk.view());
      for_each_matrix(chunk, [&](std::int64_t i, std::int64_t first, std::int64_t rows) {
        std::int64_t missing = 0;
        for (std::int64_t row = 0; row < rows; ++row) missing += !has_diagonal(chunk, first + row, row);
        added_[at(begin + i)] = static_cast<std::int32_t>(missing);
      });
      for (std::int64_t i = begin; i < end; ++i) totals.nnz += added_[at(i)];
    });
    set_totals(totals);
  }

 private:
  void require_square(std::int64_t begin, const BatchView& chunk) const {
    for (std::int64_t i = 0; i < chunk.count(); ++i)
      if (chunk.rows_of(i) != chunk.cols_of(i))
        throw Error(ErrorKind::input,
                    fmt::format("{}: matrix {} is {} × {}; self loops and their normalisation need square matrices",
                                source_->name(), begin + i, chunk.rows_of(i), chunk.cols_of(i)));
  }

  BatchSizes sizes_of(std::int64_t begin, std::int64_t end) const override {
    BatchSizes sizes = source_->sizes(begin, end);
    for (std::int64_t i = begin; i < end; ++i) sizes.nnz[at(i - begin)] += added_[at(i)];
    return sizes;
  }
  HostBatch read_range(std::int64_t begin, std::int64_t end) const override {
    HostBatch batch = source_->read(begin, end);
    if (normalise_) add_to_diagonal(batch);
    batch = with_self_loops(batch);
    if (normalise_) normalise(batch, source_->name(), begin);
    return batch;
  }

  std::shared_ptr<const BatchSource> source_;
  bool normalise_;
  HostVector<std::int32_t> added_;  ///< diagonal entries that each matrix gets
};

}  // namespace

std::shared_ptr<const BatchSource> transformed(std::shared_ptr<const BatchSource> source, const GraphOptions& options) {
  if (!options.self_loops && !options.gcn_normalise) return source;
  if (options.self_loops && options.gcn_normalise)
    throw Error(ErrorKind::usage,
                "self loops and GCN normalisation exclude each other: normalising multiplies with A + I, "
                "which has the loops; name one");
  return std::make_shared<TransformedBatch>(std::move(source), options);
}

}  // namespace shardmat
