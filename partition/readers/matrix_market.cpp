// Matrix Market coordinate files to CSR in two passes over the text: the first checks indices and counts the
// entries of each row, the second parses values and puts them where they belong, so that nothing but the
// matrix itself is ever in memory. Threads place entries of a row in any order; sorting by column, then
// value, makes the result the same for any of them.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <string_view>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "partition/files/compression/compression.h"
#include "partition/files/first_bytes.h"
#include "partition/readers/matrix_market_lines.h"
#include "partition/readers/reader_list.h"

namespace shardmat::matrix_market {
namespace {

void add(std::int64_t& counter, std::int64_t count) {
  std::atomic_ref<std::int64_t>(counter).fetch_add(count, std::memory_order_relaxed);
}

/// Counts entries of expanded rows into row_ptr[row + 1] and returns the number of lines with entries.
std::int64_t count_entries(TextSource& source, const Header& header, const ReadLimits& limits, const Progress& progress,
                           HostVector<std::int64_t>& row_ptr) {
  std::atomic<std::int64_t> lines{0};
  std::int64_t* const counts = row_ptr.data() + 1;
  const bool mirrored = is_mirrored(header);
  for_each_piece(source, header.body_offset, limits, "count entries", progress, [&](std::string_view piece) {
    const char* const end = piece.data() + piece.size();
    std::int64_t found = 0, row = 0,
                 in_row = 0;  // files are mostly in order, so a run of one row is counted at once
    for_each_entry(piece, header, [&](const Place& place, const char* p) {
      ++found;
      if (place.row != row) {
        if (in_row > 0) add(counts[row], in_row);
        row = place.row;
        in_row = 0;
      }
      ++in_row;
      if (mirrored && place.col != place.row) add(counts[place.col], 1);
      return next_line(p, end) - 1;
    });
    if (in_row > 0) add(counts[row], in_row);
    lines.fetch_add(found, std::memory_order_relaxed);
  });
  return lines;
}

/// Places every entry at row_ptr[row]++.
void place_entries(TextSource& source, const Header& header, const ReadLimits& limits, const ReadOptions& options,
                   HostCsr& matrix) {
  const auto nnz = static_cast<std::int64_t>(matrix.col_idx.size());
  std::int64_t* const cursors = matrix.row_ptr.data();
  std::int64_t* const columns = matrix.col_idx.data();
  double* const values = matrix.values.data();
  const auto put = [&](std::int64_t row, std::int64_t col, double value) {
    const std::int64_t at = std::atomic_ref<std::int64_t>(cursors[row]).fetch_add(1, std::memory_order_relaxed);
    if (at >= nnz) source.file().require_unchanged();
    if (at >= nnz) throw Error(ErrorKind::internal, "the second pass over the text found more entries than the first");
    columns[at] = col;
    values[at] = value;
  };
  const bool mirrored = is_mirrored(header);
  const double sign = mirror_sign(header);
  for_each_piece(source, header.body_offset, limits, "read entries", options.progress, [&](std::string_view piece) {
    const char* const end = piece.data() + piece.size();
    for_each_entry(piece, header, [&](const Place& place, const char* p) {
      const double value = parse_entry_value(place, p, end, header, options.allow_nonfinite);
      put(place.row, place.col, value);
      if (mirrored && place.row != place.col) put(place.col, place.row, sign * value);
      return p;
    });
  });
}

}  // namespace

}  // namespace shardmat::matrix_market

namespace shardmat {

bool accepts_matrix_market(const std::filesystem::path& path) {
  if (uncompressed_name(path).extension() == ".mtx") return true;
  constexpr std::string_view kBanner = "%%matrixmarket";
  const std::string bytes = first_bytes(path, kBanner.size());
  return std::equal(kBanner.begin(), kBanner.end(), bytes.begin(), bytes.end(),
                    [](char wanted, char c) { return wanted == (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
}

HostCsr read_matrix_market(const std::filesystem::path& path, const ReadOptions& options) {
  return read_matrix_market(path, options, {});
}

HostCsr read_matrix_market(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits) {
  using namespace matrix_market;
  const std::unique_ptr<TextSource> source = TextSource::open(path, limits);
  const Header header = read_header(*source, options.choices.part);
  require_coordinate(path, header);
  limits.require_memory(bytes_for(header.rows, most_entries(*source, header)), path);
  limits.require_budget(bytes_for(header.rows, 0), source->file());

  HostCsr matrix;
  matrix.rows = header.rows;
  matrix.cols = header.cols;
  matrix.row_ptr.resize(static_cast<std::size_t>(header.rows) + 1);
  parallel_ranges(header.rows + 1, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    std::fill(matrix.row_ptr.begin() + begin, matrix.row_ptr.begin() + end, 0);
  });
  const std::int64_t lines = count_entries(*source, header, limits, options.progress, matrix.row_ptr);
  require_promised(path, header, lines);

  for (std::size_t i = 0; i < static_cast<std::size_t>(header.rows); ++i) matrix.row_ptr[i + 1] += matrix.row_ptr[i];
  const std::int64_t nnz = matrix.nnz();
  limits.require_budget(16 * nnz, source->file());
  matrix.col_idx.resize(static_cast<std::size_t>(nnz));
  matrix.values.resize(static_cast<std::size_t>(nnz));
  place_entries(*source, header, limits, options, matrix);
  source->file().require_unchanged();
  // Each cursor now stands at the end of its row, which is the start of the next.
  std::copy_backward(matrix.row_ptr.begin(), matrix.row_ptr.end() - 1, matrix.row_ptr.end());
  matrix.row_ptr.front() = 0;

  sort_rows_and_sum_duplicates(matrix);
  // Parsing and sorting guarantee a valid matrix, but for sums of duplicates that overflow.
  if (matrix.nnz() != nnz) validate(matrix.view(), {options.allow_nonfinite, 0, path.string()});
  return matrix;
}

}  // namespace shardmat
