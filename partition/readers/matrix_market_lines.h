// The lines of Matrix Market coordinate text, for the readers that count and place entries. Internal to readers/.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "partition/readers/matrix_market.h"

namespace shardmat::matrix_market {

/// Row and column of one line, 0-based and within the matrix.
struct Place {
  std::int64_t row, col;
};

/// Throws LineFault: the index that begins at p is missing, no number, or not from 1 to `count`.
[[noreturn]] void fail_index(const char* line, const char* p, const char* what, std::int64_t count);
/// Throws LineFault: the place is not below the diagonal of a symmetric or skew-symmetric matrix.
[[noreturn]] void fail_symmetry(const char* line, Symmetry symmetry, const Place& place);
/// Throws LineFault: a Hermitian matrix has the imaginary part `value` on the diagonal of row `row`, counted from 0.
[[noreturn]] void fail_hermitian_diagonal(const char* line, std::int64_t row, double value);

/// Throws Error(input) for an array.
void require_coordinate(const std::filesystem::path& path, const Header& header);
/// Throws Error(input) unless the text has as many entries as its size line promises.
void require_promised(const std::filesystem::path& path, const Header& header, std::int64_t entries);

/// Bytes to hold `rows` rows with `nnz` entries while they are sorted: one more number a row. At most INT64_MAX.
std::int64_t bytes_for(std::int64_t rows, std::int64_t nnz);

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
      if (symmetry != Symmetry::general && place.col > place.row) fail_symmetry(line, symmetry, place);
      p = on_entry(place, p);
    }
    line = next_line(p, end);
  }
}

/// Throws LineFault if the number at p, on the diagonal of a Hermitian matrix, has an imaginary part.
inline void require_hermitian_diagonal(const char* p, const char* end, std::int64_t row) {
  double imaginary = 0;
  parse_part(p, end, ComplexPart::imaginary, true, imaginary);
  if (imaginary != 0) fail_hermitian_diagonal(p, row, imaginary);
}

/// The value behind the column at p; 1 for a pattern. Moves p to the line's end. Throws LineFault, also for a value on the
/// diagonal of a skew-symmetric matrix that is not zero, and for an imaginary part on the diagonal of a Hermitian matrix.
inline double parse_entry_value(const Place& place, const char*& p, const char* end, const Header& header,
                                bool allow_nonfinite) {
  double value = 1;
  const char* const begin = p;
  if (header.field == Field::complex) p = parse_part(skip_blanks(p), end, header.part, allow_nonfinite, value);
  else if (header.field != Field::pattern) p = parse_value(skip_blanks(p), end, header.field, allow_nonfinite, value);
  p = skip_blanks(p);
  if (*p != '\n') require_line_end(p);
  if (header.symmetry == Symmetry::hermitian && place.row == place.col)
    require_hermitian_diagonal(skip_blanks(begin), end, place.row);
  if (header.symmetry == Symmetry::skew_symmetric && place.row == place.col && value != 0)
    fail_symmetry(begin, header.symmetry, place);
  return value;
}

/// True if each entry off the diagonal stands for two.
inline bool is_mirrored(const Header& header) { return header.symmetry != Symmetry::general; }
/// What the mirrored entry's value is multiplied by.
inline double mirror_sign(const Header& header) {
  const bool conjugate = header.symmetry == Symmetry::hermitian && header.part == ComplexPart::imaginary;
  return header.symmetry == Symmetry::skew_symmetric || conjugate ? -1 : 1;
}

}  // namespace shardmat::matrix_market
