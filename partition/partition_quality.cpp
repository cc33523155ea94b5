#include <algorithm>
#include <utility>

#include "kernels/base/memory_limits.h"
#include "partition/source/partitioner.h"

namespace shardmat {

std::vector<std::int64_t> column_starts(const Partition& partition, std::int64_t cols) {
  const bool square = partition.row_starts.back() == cols;
  return square ? partition.row_starts : even_starts(cols, partition.parts());
}

namespace {

/// Of a bit for each column. Throws Error(resources) if they do not fit.
std::size_t words_for(std::int64_t cols) {
  const std::int64_t words = cols / 64 + 1;
  require_host_memory(8 * words, "counting the columns that each part needs");
  return static_cast<std::size_t>(words);
}

}  // namespace

QualityMeter::QualityMeter(Partition partition, std::int64_t cols)
    : partition_(std::move(partition)),
      column_starts_(column_starts(partition_, cols)),
      seen_(words_for(cols)),
      met_(static_cast<std::size_t>(partition_.parts())),
      sent_(met_.size()) {
  quality_.rows_min = quality_.nnz_min = INT64_MAX;
  std::int64_t largest = 0;
  for (std::size_t p = 0; p + 1 < column_starts_.size(); ++p)
    largest = std::max(largest, column_starts_[p + 1] - column_starts_[p]);
  quality_.allgather_max = (partition_.parts() - 1) * largest;
  quality_.allgather_total = partition_.parts() * quality_.allgather_max;
}

void QualityMeter::leave_part() {
  const auto p = static_cast<std::size_t>(part_);
  const std::int64_t rows = partition_.row_starts[p + 1] - partition_.row_starts[p];
  quality_.rows_min = std::min(quality_.rows_min, rows);
  quality_.rows_max = std::max(quality_.rows_max, rows);
  quality_.nnz_min = std::min(quality_.nnz_min, part_nnz_);
  quality_.nnz_max = std::max(quality_.nnz_max, part_nnz_);
  nnz_ += part_nnz_;
  quality_.halo_max = std::max(quality_.halo_max, part_halo_);
  quality_.halo_total += part_halo_;
  quality_.neighbours_max = std::max(quality_.neighbours_max, std::ssize(neighbours_));
  quality_.boundary_nnz_max = std::max(quality_.boundary_nnz_max, part_boundary_nnz_);
  std::fill(seen_.begin() + touched_begin_, seen_.begin() + touched_end_, 0);
  for (const std::size_t neighbour : neighbours_) met_[neighbour] = false;
  neighbours_.clear();
  touched_begin_ = touched_end_ = part_nnz_ = part_halo_ = part_boundary_nnz_ = 0;
  ++part_;
}

void QualityMeter::mark(std::int64_t begin, std::int64_t end, const CsrView& rows) {
  if (begin == end) return;
  const std::int64_t first_word = rows.col_idx[static_cast<std::size_t>(begin)] / 64;
  const std::int64_t last_word = rows.col_idx[static_cast<std::size_t>(end - 1)] / 64;
  touched_begin_ = touched_end_ == 0 ? first_word : std::min(touched_begin_, first_word);
  touched_end_ = std::max(touched_end_, last_word + 1);
  for (std::int64_t k = begin; k < end; ++k) {
    const auto column = static_cast<std::uint64_t>(rows.col_idx[static_cast<std::size_t>(k)]);
    std::uint64_t& word = seen_[column / 64];
    const std::uint64_t bit = std::uint64_t{1} << column % 64;
    if ((word & bit) != 0) continue;
    word |= bit;
    ++part_halo_, ++sent_[meet_owner(rows.col_idx[static_cast<std::size_t>(k)])];
  }
}

std::size_t QualityMeter::meet_owner(std::int64_t column) {
  const auto after = std::upper_bound(column_starts_.begin(), column_starts_.end(), column);
  const auto owner = static_cast<std::size_t>(after - column_starts_.begin()) - 1;
  if (!met_[owner]) neighbours_.push_back(owner);
  met_[owner] = true;
  return owner;
}

void QualityMeter::add(const CsrView& rows) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows.rows); ++i, ++row_) {
    while (row_ >= partition_.row_starts[static_cast<std::size_t>(part_) + 1]) leave_part();
    const std::int64_t own_begin = column_starts_[static_cast<std::size_t>(part_)];
    const std::int64_t own_end = column_starts_[static_cast<std::size_t>(part_) + 1];
    const std::int64_t begin = rows.row_ptr[i] - rows.row_ptr[0], end = rows.row_ptr[i + 1] - rows.row_ptr[0];
    part_nnz_ += end - begin;
    if (begin == end) continue;
    const auto columns = rows.col_idx.begin();
    if (columns[begin] >= own_begin && columns[end - 1] < own_end) continue;
    part_boundary_nnz_ += end - begin;
    mark(begin, std::lower_bound(columns + begin, columns + end, own_begin) - columns, rows);
    mark(std::lower_bound(columns + begin, columns + end, own_end) - columns, end, rows);
  }
}

PartitionQuality QualityMeter::result() {
  while (part_ < partition_.parts()) leave_part();
  quality_.rows_mean = static_cast<double>(row_) / partition_.parts();
  quality_.nnz_mean = static_cast<double>(nnz_) / partition_.parts();
  quality_.sent_max = *std::max_element(sent_.begin(), sent_.end());
  if (nnz_ > 0) quality_.imbalance = static_cast<double>(quality_.nnz_max) / quality_.nnz_mean;
  return quality_;
}

PartitionQuality evaluate(const RowSource& source, const Partition& partition) {
  QualityMeter meter(partition, source.cols());
  for_each_row_slice(source, 0, source.rows(), [&](std::int64_t, const CsrView& rows) { meter.add(rows); });
  return meter.result();
}

}  // namespace shardmat
