#include "partition/batched/generated_batch.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/base/at.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMatricesATask = 256;
constexpr std::int64_t kCountedAtATime = 1 << 20;

HostVector<std::int64_t> offsets(const HostVector<std::int64_t>& sizes) {
  HostVector<std::int64_t> offsets(sizes.size() + 1);
  offsets[0] = 0;
  std::partial_sum(sizes.begin(), sizes.end(), offsets.begin() + 1);
  return offsets;
}

/// Of the indices and values of entries and the offsets of rows.
std::int64_t entry_bytes(std::int64_t entries, std::int64_t rows) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return std::max(entries, rows) > kMost / 32 ? kMost : 12 * entries + 8 * rows;
}

}  // namespace

void GeneratedBatch::count_up(std::int64_t count) {
  BatchTotals totals;
  for (std::int64_t begin = 0; begin < count; begin += kCountedAtATime)
    totals.add(sizes_of(begin, std::min(count, begin + kCountedAtATime)));
  set_totals(totals);
}

BatchSizes GeneratedBatch::sizes_of(std::int64_t begin, std::int64_t end) const {
  BatchSizes sizes;
  for (auto* all : {&sizes.rows, &sizes.cols, &sizes.nnz}) all->resize(at(end - begin));
  parallel_ranges(end - begin, kMatricesATask, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      const Shape one = shape(begin + i);
      sizes.rows[at(i)] = one.rows;
      sizes.cols[at(i)] = one.cols;
      sizes.nnz[at(i)] = one.nnz;
    }
  });
  return sizes;
}

HostBatch GeneratedBatch::read_range(std::int64_t begin, std::int64_t end) const {
  if (end - begin > kCountedAtATime) require_host_memory(40 * (end - begin), name().c_str());
  const BatchSizes sizes = sizes_of(begin, end);
  const HostVector<std::int64_t> first = offsets(sizes.nnz);
  HostBatch batch;
  batch.first_row = offsets(sizes.rows);
  batch.first_col = offsets(sizes.cols);
  if (std::max(first.back(), batch.first_row.back()) > kSliceEntries)
    require_host_memory(entry_bytes(first.back(), batch.first_row.back()), name().c_str());
  batch.row_ptr.resize(at(batch.first_row.back()) + 1);
  batch.col_idx.resize(at(first.back()));
  batch.values.resize(at(first.back()));
  parallel_ranges(end - begin, kMatricesATask, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      std::int64_t* const row_ends = batch.row_ptr.data() + batch.first_row[at(i)] + 1;
      fill(begin + i, {sizes.rows[at(i)], sizes.cols[at(i)], sizes.nnz[at(i)]},
           {row_ends, batch.col_idx.data() + first[at(i)], batch.values.data() + first[at(i)]});
      std::for_each_n(row_ends, sizes.rows[at(i)], [&](std::int64_t& row_end) { row_end += first[at(i)]; });
    }
  });
  batch.row_ptr[0] = 0;
  return batch;
}

}  // namespace shardmat
