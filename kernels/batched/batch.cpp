#include "kernels/batched/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/base/at.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMatricesPerTask = 1 << 10;

[[noreturn]] void reject(const std::string& source, const std::string& why) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", source, why));
}

/// Offsets of one kind: one for each of `pieces` and one more, ascending. `piece` names what they lie between.
void require_offsets(const std::string& source, std::span<const std::int64_t> offsets, std::int64_t pieces, const char* what,
                     const char* piece, std::int64_t first_piece) {
  if (std::ssize(offsets) != pieces + 1)
    reject(source,
           fmt::format("there are {} {} for {} of these; there must be {}", offsets.size(), what, pieces, pieces + 1));
  for (std::int64_t i = 0; i < pieces; ++i)
    if (offsets[at(i + 1)] < offsets[at(i)])
      reject(source, fmt::format("{} {}: its {} fall from {} to {}", piece, first_piece + i, what, offsets[at(i)],
                                 offsets[at(i + 1)]));
}

/// Why an index or a value is wrong, or empty.
std::string fault_of_entry(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols, double value) {
  if (row < 0 || row >= rows) return fmt::format("row {} is out of range [0, {})", row, rows);
  if (col < 0 || col >= cols) return fmt::format("column {} is out of range [0, {})", col, cols);
  if (!std::isfinite(value)) return fmt::format("the value at row {}, column {} is {}", row, col, value);
  return {};
}

/// Calls fault(i), "" or what is wrong with matrix i, on all threads, and throws the first.
template <class Fault>
void require_matrices(const std::string& source, std::int64_t count, std::int64_t first_matrix, const Fault& fault) {
  std::atomic<std::int64_t> first_wrong{count};
  parallel_tasks((count + kMatricesPerTask - 1) / kMatricesPerTask, [&](std::int64_t task) {
    const std::int64_t end = std::min(count, (task + 1) * kMatricesPerTask);
    for (std::int64_t i = task * kMatricesPerTask; i < end && i < first_wrong.load(std::memory_order_relaxed); ++i) {
      if (fault(i).empty()) continue;
      std::int64_t known = first_wrong.load();
      while (i < known && !first_wrong.compare_exchange_weak(known, i)) {
      }
      return;
    }
  });
  if (const std::int64_t i = first_wrong; i < count)
    reject(source, fmt::format("matrix {}, {}", first_matrix + i, fault(i)));
}

/// Appends the offsets of `more`, whose first is 0 here.
void append_offsets(HostVector<std::int64_t>& offsets, std::span<const std::int64_t> more) {
  const std::int64_t shift = offsets.back() - more.front();
  for (const std::int64_t offset : more.subspan(1)) offsets.push_back(offset + shift);
}

/// The offsets, counted from the first.
HostVector<std::int64_t> from_zero(std::span<const std::int64_t> offsets) {
  HostVector<std::int64_t> all{0};
  if (!offsets.empty()) append_offsets(all, offsets);
  return all;
}

}  // namespace

std::int64_t BatchView::nnz_of(std::int64_t matrix) const {
  const std::int64_t base = first_row.front();
  return row_ptr[at(first_row[at(matrix) + 1] - base)] - row_ptr[at(first_row[at(matrix)] - base)];
}

BatchView BatchView::slice(std::int64_t begin, std::int64_t end) const {
  if (begin == end) return {};
  const auto matrices = at(end - begin) + 1;
  const auto row = at(first_row[at(begin)] - first_row.front()), last_row = at(first_row[at(end)] - first_row.front());
  const auto entry = at(row_ptr[row] - row_ptr.front()), entries = at(row_ptr[last_row] - row_ptr[row]);
  return {first_row.subspan(at(begin), matrices), first_col.subspan(at(begin), matrices),
          row_ptr.subspan(row, last_row - row + 1), col_idx.subspan(entry, entries), values.subspan(entry, entries)};
}

void HostBatch::reserve(std::int64_t count, std::int64_t rows, std::int64_t nnz) {
  first_row.reserve(at(count) + 1), first_col.reserve(at(count) + 1), row_ptr.reserve(at(rows) + 1);
  col_idx.reserve(at(nnz)), values.reserve(at(nnz));
}

void HostBatch::append(const BatchView& more) {
  if (more.count() == 0) return;
  append_offsets(first_row, more.first_row);
  append_offsets(first_col, more.first_col);
  append_offsets(row_ptr, more.row_ptr);
  col_idx.insert(col_idx.end(), more.col_idx.begin(), more.col_idx.end());
  values.insert(values.end(), more.values.begin(), more.values.end());
}

HostCooBatch to_coo(const BatchView& batch, std::uint64_t seed) {
  HostCooBatch coo;
  coo.first_row = from_zero(batch.first_row);
  coo.first_col = from_zero(batch.first_col);
  coo.col_idx.reserve(at(batch.nnz()));
  coo.row_idx.reserve(at(batch.nnz()));
  coo.values.reserve(at(batch.nnz()));
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0, first = 0; i < batch.count(); ++i) {
    const std::int64_t base = batch.row_ptr.front(), first_row = batch.first_row[at(i)] - batch.first_row.front();
    for (std::int64_t row = 0; row < batch.rows_of(i); ++row)
      for (std::int64_t k = batch.row_ptr[at(first_row + row)] - base; k < batch.row_ptr[at(first_row + row + 1)] - base;
           ++k) {
        coo.row_idx.push_back(static_cast<std::int32_t>(row));
        coo.col_idx.push_back(batch.col_idx[at(k)]);
        coo.values.push_back(batch.values[at(k)]);
      }
    const std::int64_t end = std::ssize(coo.values);
    if (seed != 0)
      for (std::int64_t left = end - first; left > 1; --left) {
        const auto a = at(first + left - 1), b = at(first) + random() % static_cast<std::uint64_t>(left);
        std::swap(coo.row_idx[a], coo.row_idx[b]);
        std::swap(coo.col_idx[a], coo.col_idx[b]);
        std::swap(coo.values[a], coo.values[b]);
      }
    coo.first_entry.push_back(first = end);
  }
  return coo;
}

HostBatch to_csr(const CooBatchView& batch) {
  HostBatch csr;
  csr.first_row = from_zero(batch.first_row);
  csr.first_col = from_zero(batch.first_col);
  csr.row_ptr.assign(at(csr.first_row.back()) + 1, 0);
  csr.col_idx.resize(at(batch.nnz()));
  csr.values.resize(at(batch.nnz()));
  const auto visit = [&](const auto& use) {
    for (std::int64_t i = 0; i < batch.count(); ++i)
      for (std::int64_t k = batch.first_entry[at(i)]; k < batch.first_entry[at(i + 1)]; ++k) {
        const auto entry = at(k - batch.first_entry.front());
        use(at(csr.first_row[at(i)] + batch.row_idx[entry]), entry);
      }
  };
  visit([&](std::size_t row, std::size_t) { ++csr.row_ptr[row + 1]; });
  std::partial_sum(csr.row_ptr.begin(), csr.row_ptr.end(), csr.row_ptr.begin());
  HostVector<std::int64_t> next = csr.row_ptr;
  visit([&](std::size_t row, std::size_t entry) {
    const auto place = at(next[row]++);
    csr.col_idx[place] = batch.col_idx[entry];
    csr.values[place] = batch.values[entry];
  });
  return csr;
}

HostBatch transposed(const BatchView& batch) {
  HostCooBatch coo = to_coo(batch);
  std::swap(coo.first_row, coo.first_col);
  std::swap(coo.row_idx, coo.col_idx);
  return to_csr(coo.view());
}

void validate(const BatchView& batch, const std::string& source, std::int64_t first_matrix) {
  const std::int64_t count = batch.count();
  if (count == 0 && batch.col_idx.empty()) return;
  require_offsets(source, batch.first_row, count, "first rows", "matrix", first_matrix);
  require_offsets(source, batch.first_col, count, "first columns", "matrix", first_matrix);
  require_offsets(source, batch.row_ptr, batch.rows(), "row pointers", "stacked row", batch.first_row.front());
  if (std::ssize(batch.col_idx) != batch.nnz() || std::ssize(batch.values) != batch.nnz())
    reject(source, fmt::format("the row pointers promise {} nonzeros but there are {} columns and {} values", batch.nnz(),
                               batch.col_idx.size(), batch.values.size()));
  require_matrices(source, count, first_matrix, [&](std::int64_t i) -> std::string {
    const std::int64_t first_row = batch.first_row[at(i)] - batch.first_row.front(), base = batch.row_ptr.front();
    const std::int64_t first = batch.row_ptr[at(first_row)] - base;
    for (std::int64_t row = 0; row < batch.rows_of(i); ++row)
      for (std::int64_t k = batch.row_ptr[at(first_row + row)] - base; k < batch.row_ptr[at(first_row + row + 1)] - base;
           ++k)
        if (const auto why =
                fault_of_entry(row, batch.rows_of(i), batch.col_idx[at(k)], batch.cols_of(i), batch.values[at(k)]);
            !why.empty())
          return fmt::format("entry {} (row {}): {}", k - first, row, why);
    return {};
  });
}

void validate(const CooBatchView& batch, const std::string& source, std::int64_t first_matrix) {
  const std::int64_t count = batch.count();
  if (count == 0 && batch.col_idx.empty()) return;
  require_offsets(source, batch.first_row, count, "first rows", "matrix", first_matrix);
  require_offsets(source, batch.first_col, count, "first columns", "matrix", first_matrix);
  require_offsets(source, batch.first_entry, count, "first entries", "matrix", first_matrix);
  if (std::ssize(batch.row_idx) != batch.nnz() || std::ssize(batch.col_idx) != batch.nnz() ||
      std::ssize(batch.values) != batch.nnz())
    reject(source, fmt::format("the offsets promise {} entries but there are {} rows, {} columns and {} values", batch.nnz(),
                               batch.row_idx.size(), batch.col_idx.size(), batch.values.size()));
  require_matrices(source, count, first_matrix, [&](std::int64_t i) -> std::string {
    const std::int64_t base = batch.first_entry.front(), first = batch.first_entry[at(i)] - base;
    const std::int64_t rows = batch.first_row[at(i + 1)] - batch.first_row[at(i)];
    const std::int64_t cols = batch.first_col[at(i + 1)] - batch.first_col[at(i)];
    for (std::int64_t k = first; k < batch.first_entry[at(i + 1)] - base; ++k)
      if (const auto why = fault_of_entry(batch.row_idx[at(k)], rows, batch.col_idx[at(k)], cols, batch.values[at(k)]);
          !why.empty())
        return fmt::format("entry {}: {}", k - first, why);
    return {};
  });
}

}  // namespace shardmat
