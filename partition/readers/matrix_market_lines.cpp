// What is wrong with a line of Matrix Market coordinate text, and with the text as a whole.
#include "partition/readers/matrix_market_lines.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <system_error>

#include "kernels/base/error.h"

namespace shardmat::matrix_market {
namespace {

const char* line_end(const char* p) {
  while (*p != '\n') ++p;
  return p;
}

std::string quote_line(const char* line) {
  return quote(std::string_view(line, static_cast<std::size_t>(line_end(line) - line)));
}

}  // namespace

void fail_index(const char* line, const char* p, const char* what, std::int64_t count) {
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

void fail_symmetry(const char* line, Symmetry symmetry, const Place& place) {
  const char* kind = symmetry == Symmetry::symmetric   ? "symmetric"
                     : symmetry == Symmetry::hermitian ? "hermitian"
                                                       : "skew-symmetric";
  if (place.row == place.col)
    throw LineFault{line,
                    fmt::format("the skew-symmetric matrix has a value on its diagonal at row {}, where it must be zero; "
                                "correct or remove the line",
                                place.row + 1)};
  throw LineFault{line,
                  fmt::format("the {} matrix has the entry ({}, {}) above its diagonal; store the lower triangle only, "
                              "or declare the matrix general",
                              kind, place.row + 1, place.col + 1)};
}

void fail_hermitian_diagonal(const char* line, std::int64_t row, double value) {
  throw LineFault{line,
                  fmt::format("the hermitian matrix has the imaginary part {} on its diagonal at row {}, where it must "
                              "be zero; correct the line, or store all entries and declare the matrix general",
                              value, row + 1)};
}

void require_coordinate(const std::filesystem::path& path, const Header& header) {
  if (header.layout == Layout::array)
    throw Error(ErrorKind::input,
                fmt::format("{}:1: the format array is for dense matrices and vectors; write the matrix in the format "
                            "coordinate, for example with scipy.io.mmwrite(name, scipy.sparse.coo_array(a))",
                            path.string()));
}

void require_promised(const std::filesystem::path& path, const Header& header, std::int64_t entries) {
  if (entries != header.entries)
    throw Error(ErrorKind::input, fmt::format("{}:{}: the size line promises {} entries, the file has {}; {}", path.string(),
                                              header.size_line, header.entries, entries,
                                              entries < header.entries ? "it is truncated, or the size line is wrong"
                                                                       : "correct the size line"));
}

std::int64_t bytes_for(std::int64_t rows, std::int64_t nnz) {
  std::int64_t of_rows = 0, of_entries = 0, all = 0;
  if (__builtin_mul_overflow(rows, std::int64_t{16}, &of_rows) ||
      __builtin_mul_overflow(nnz, std::int64_t{16}, &of_entries) || __builtin_add_overflow(of_rows, of_entries, &all) ||
      __builtin_add_overflow(all, std::int64_t{8}, &all))
    return std::numeric_limits<std::int64_t>::max();
  return all;
}

}  // namespace shardmat::matrix_market
