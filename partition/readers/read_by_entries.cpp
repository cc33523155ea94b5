// A matrix from an EntryReader in two passes: the first counts the entries of each row, the second puts them where they
// belong. Threads place the entries of a row in any order; sorting by column, then value, makes the result the same.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "kernels/base/error.h"
#include "partition/readers/entry_reader.h"

namespace shardmat {
namespace {

/// 16 · (a + b), or INT64_MAX if that is less.
std::int64_t sixteen_times(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0, result = 0;
  if (__builtin_add_overflow(a, b, &sum) || __builtin_mul_overflow(sum, std::int64_t{16}, &result))
    return std::numeric_limits<std::int64_t>::max();
  return result;
}

[[noreturn]] void fail_changed(const EntryReader& reader) {
  throw Error(ErrorKind::input,
              fmt::format("{}: the file was changed while it was read; read it again when its writer is done",
                          reader.file().path().string()));
}

}  // namespace

void require_unique(const HostCsr& part, std::int64_t first_row, const std::string& what) {
  HostVector<std::int64_t> columns;
  for (std::int64_t row = 0; row < part.rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    columns.assign(part.col_idx.begin() + part.row_ptr[at], part.col_idx.begin() + part.row_ptr[at + 1]);
    std::sort(columns.begin(), columns.end());
    const auto twice = std::adjacent_find(columns.begin(), columns.end());
    if (twice != columns.end())
      throw Error(ErrorKind::input,
                  fmt::format("{}: the entry in row {}, column {} comes twice (counted from 0), which this "
                              "format forbids; write each entry once",
                              what, first_row + row, *twice));
  }
}

HostCsr read_by_entries(EntryReader& reader, const ReadOptions& options, const ReadLimits& limits) {
  const std::filesystem::path path = reader.file().path();
  ReadLimits::require_plausible(reader.bytes_asked(), path, reader.file_bytes());
  limits.require_memory(sixteen_times(reader.rows(), 0), path);
  HostCsr matrix;
  matrix.rows = reader.rows();
  matrix.cols = reader.cols();
  matrix.row_ptr.assign(static_cast<std::size_t>(matrix.rows) + 1, 0);
  try {
    std::int64_t* const counts = matrix.row_ptr.data() + 1;
    const std::int64_t stored = reader.count(
        {},
        [&](std::span<const RowCount> found) {
          for (const RowCount& one : found)
            std::atomic_ref<std::int64_t>(counts[one.row]).fetch_add(one.count, std::memory_order_relaxed);
        },
        options.progress);
    reader.require_promised(stored);
    for (std::size_t i = 0; i < static_cast<std::size_t>(matrix.rows); ++i) matrix.row_ptr[i + 1] += matrix.row_ptr[i];
    const std::int64_t nnz = matrix.nnz();
    limits.require_memory(sixteen_times(nnz, 0), path);
    ReadLimits::require_plausible(sixteen_times(nnz, 0), path, reader.file_bytes());
    matrix.col_idx.resize(static_cast<std::size_t>(nnz));
    matrix.values.resize(static_cast<std::size_t>(nnz));
    std::int64_t* const next = matrix.row_ptr.data();
    reader.read(
        {},
        [&](std::span<const MatrixEntry> entries) {
          for (const MatrixEntry& entry : entries) {
            const std::int64_t at = std::atomic_ref<std::int64_t>(next[entry.row]).fetch_add(1, std::memory_order_relaxed);
            if (at >= nnz) fail_changed(reader);
            matrix.col_idx[static_cast<std::size_t>(at)] = entry.col;
            matrix.values[static_cast<std::size_t>(at)] = entry.value;
          }
        },
        options.progress);
    // Each cursor now stands at the end of its row, which is the start of the next.
    std::copy_backward(matrix.row_ptr.begin(), matrix.row_ptr.end() - 1, matrix.row_ptr.end());
    matrix.row_ptr.front() = 0;
    if (matrix.nnz() != nnz) fail_changed(reader);
    reader.check_duplicates(matrix, 0);
    if (reader.forbids_duplicates()) require_unique(matrix, 0, reader.file().path().string());
    sort_rows_and_sum_duplicates(matrix);
    if (reader.needs_validation() || matrix.nnz() != nnz)
      validate(matrix.view(), {options.allow_nonfinite, 0, path.string()});
    return matrix;
  } catch (const TextFault& fault) {
    reader.fail(fault);
    throw;  // not reached; the compiler does not know
  }
}

}  // namespace shardmat
