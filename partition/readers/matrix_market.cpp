// Matrix Market coordinate files to CSR in two passes over the text: the first checks indices and counts the
// entries of each row, the second parses values and puts them where they belong, so that nothing but the
// matrix itself is ever in memory. Threads place entries of a row in any order; sorting by column, then
// value, makes the result the same for any of them.
#include "partition/readers/matrix_market.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <limits>
#include <system_error>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "partition/readers/reader_list.h"

namespace shardmat::matrix_market {
namespace {

const char* line_end(const char* p) {
  while (*p != '\n') ++p;
  return p;
}

std::string quote_line(const char* line) {
  return quote(std::string_view(line, static_cast<std::size_t>(line_end(line) - line)));
}

/// Row and column of one line, 0-based and within the matrix.
struct Place {
  std::int64_t row, col;
};

[[noreturn]] void fail_index(const char* line, const char* p, const char* what, std::int64_t count) {
  if (*p == '\n')
    throw LineFault{line, fmt::format("the {} index is missing in {}; the line is truncated", what, quote_line(line))};
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(p, line_end(p), index);
  const bool number = error != std::errc::invalid_argument && skip_blanks(end) != end;
  if (!number && *end != '\n')
    throw LineFault{line, fmt::format("the {} index {} is no whole number in {}; correct or remove the line", what,
                                      quote_word(p), quote_line(line))};
  throw LineFault{line, fmt::format("the {} index {} is out of range: it must be from 1 to {}; correct it or the size line",
                                    what, quote_word(p), count)};
}

/// Parses an index from 1 to count into index (0-based).
inline const char* parse_index(const char* line, const char* p, const char* what, std::int64_t count, std::int64_t& index) {
  p = skip_blanks(p);
  const char* first = p;
  std::uint64_t value = 0;
  for (unsigned digit; (digit = static_cast<unsigned char>(*p) - unsigned{'0'}) <= 9; ++p) value = value * 10 + digit;
  // 19 digits cannot wrap around 2^64; longer numbers count as out of range even if they start with zeros.
  const bool ends = *p == ' ' || *p == '\n' || *p == '\t' || *p == '\r';
  if (p == first || p - first > 19 || !ends || value - 1 >= static_cast<std::uint64_t>(count))
    fail_index(line, first, what, count);
  index = static_cast<std::int64_t>(value) - 1;
  return p;
}

inline const char* next_line(const char* p, const char* end) {
  return static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p))) + 1;
}

[[noreturn]] void fail_symmetry(const char* line, Symmetry symmetry, const Place& place) {
  const char* kind = symmetry == Symmetry::symmetric ? "symmetric" : "skew-symmetric";
  if (place.row == place.col)
    throw LineFault{line, fmt::format("the skew-symmetric matrix has an entry on its diagonal at row {}, where it is zero; "
                                      "remove the line",
                                      place.row + 1)};
  throw LineFault{line,
                  fmt::format("the {} matrix has the entry ({}, {}) above its diagonal; store the lower triangle only, "
                              "or declare the matrix general",
                              kind, place.row + 1, place.col + 1)};
}

/// Calls on_entry(place, p) for each entry of a piece, p behind the column; it returns a place in the same
/// line.
template <class OnEntry>
void for_each_entry(std::string_view piece, const Header& header, OnEntry&& on_entry) {
  const std::int64_t rows = header.rows, cols = header.cols;
  const Symmetry symmetry = header.symmetry;
  const char* const end = piece.data() + piece.size();
  for (const char* line = piece.data(); line < end;) {
    const char* p = skip_blanks(line);
    if (*p != '\n' && *p != '%') {
      Place place;
      p = parse_index(line, p, "row", rows, place.row);
      p = parse_index(line, p, "column", cols, place.col);
      if (symmetry != Symmetry::general &&
          (place.col > place.row || (place.col == place.row && symmetry == Symmetry::skew_symmetric)))
        fail_symmetry(line, symmetry, place);
      p = on_entry(place, p);
    }
    line = next_line(p, end);
  }
}

void add(std::int64_t& counter, std::int64_t count) {
  std::atomic_ref<std::int64_t>(counter).fetch_add(count, std::memory_order_relaxed);
}

/// Counts entries of expanded rows into row_ptr[row + 1] and returns the number of lines with entries.
std::int64_t count_entries(TextSource& source, const Header& header, const ReadLimits& limits, const Progress& progress,
                           HostVector<std::int64_t>& row_ptr) {
  std::atomic<std::int64_t> lines{0};
  std::int64_t* const counts = row_ptr.data() + 1;
  const bool mirrored = header.symmetry != Symmetry::general;
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
  const bool mirrored = header.symmetry != Symmetry::general;
  const double mirror_sign = header.symmetry == Symmetry::skew_symmetric ? -1 : 1;
  for_each_piece(source, header.body_offset, limits, "read entries", options.progress, [&](std::string_view piece) {
    const char* const end = piece.data() + piece.size();
    for_each_entry(piece, header, [&](const Place& place, const char* p) {
      double value = 1;
      if (header.field != Field::pattern) p = parse_value(skip_blanks(p), end, header.field, options.allow_nonfinite, value);
      p = skip_blanks(p);
      if (*p != '\n') require_line_end(p);
      put(place.row, place.col, value);
      if (mirrored && place.row != place.col) put(place.col, place.row, mirror_sign * value);
      return p;
    });
  });
}

void require_coordinate(const std::filesystem::path& path, const Header& header) {
  if (header.layout == Layout::array)
    throw Error(ErrorKind::input,
                fmt::format("{}:1: the format array is for dense matrices and vectors; write the matrix in the format "
                            "coordinate, for example with scipy.io.mmwrite(name, scipy.sparse.coo_array(a))",
                            path.string()));
}

/// Bytes to hold `rows` rows with `nnz` entries while they are sorted: one more number a row.
std::int64_t bytes_for(std::int64_t rows, std::int64_t nnz) {
  std::int64_t of_rows = 0, of_entries = 0, all = 0;
  if (__builtin_mul_overflow(rows, std::int64_t{16}, &of_rows) ||
      __builtin_mul_overflow(nnz, std::int64_t{16}, &of_entries) || __builtin_add_overflow(of_rows, of_entries, &all) ||
      __builtin_add_overflow(all, std::int64_t{8}, &all))
    return std::numeric_limits<std::int64_t>::max();
  return all;
}

}  // namespace

}  // namespace shardmat::matrix_market

namespace shardmat {

bool accepts_matrix_market(const std::filesystem::path& path) {
  return path.extension() == ".mtx" || (path.extension() == ".gz" && path.stem().extension() == ".mtx");
}

HostCsr read_matrix_market(const std::filesystem::path& path, const ReadOptions& options) {
  return read_matrix_market(path, options, {});
}

HostCsr read_matrix_market(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits) {
  using namespace matrix_market;
  const std::unique_ptr<TextSource> source = TextSource::open(path, limits);
  const Header header = read_header(*source);
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
  if (lines != header.entries)
    throw Error(ErrorKind::input, fmt::format("{}:{}: the size line promises {} entries, the file has {}; {}", path.string(),
                                              header.size_line, header.entries, lines,
                                              lines < header.entries ? "it is truncated, or the size line is wrong"
                                                                     : "correct the size line"));

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
