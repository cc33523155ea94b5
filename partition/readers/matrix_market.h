// Matrix Market text: its header and its numbers, for the matrix reader and for vector files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "partition/readers/input_choices.h"
#include "partition/readers/text_source.h"

namespace shardmat::matrix_market {

enum class Layout { coordinate, array };
enum class Field { real, integer, unsigned_integer, pattern, complex };
enum class Symmetry { general, symmetric, skew_symmetric, hermitian };

struct Header {
  Layout layout = Layout::coordinate;
  Field field = Field::real;
  Symmetry symmetry = Symmetry::general;
  ComplexPart part = ComplexPart::none;  ///< of a complex field: which number of the two is read
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t entries = 0;      ///< of the file, not of the expanded matrix; rows · cols for an array
  std::int64_t size_line = 0;    ///< number of the line with the sizes
  std::int64_t body_offset = 0;  ///< bytes of text before the entries
};

/// Reads banner, comments and size line. Throws Error(input) with the line number if the file is no Matrix Market file, or
/// is complex, unless a part is wanted, or real, if one is.
Header read_header(TextSource& source, ComplexPart part = ComplexPart::none);

/// The number of entries in the size line, or the most entries that fit into the file if that is less.
std::int64_t most_entries(const TextSource& source, const Header& header);

/// Skips blanks; a carriage return counts as one.
inline const char* skip_blanks(const char* p) {
  while (*p == ' ' || *p == '\t' || *p == '\r') ++p;
  return p;
}

/// Parses a number of the field at p. REQUIRES: *p is not blank, and a '\n' before `end` ends the line. Returns the position
/// after the number. Throws LineFault for invalid or too large numbers, and for NaN and infinity unless allowed.
const char* parse_value(const char* p, const char* end, Field field, bool allow_nonfinite, double& value);

/// The same of a complex field: parses both numbers, and `value` becomes the wanted part.
const char* parse_part(const char* p, const char* end, ComplexPart part, bool allow_nonfinite, double& value);

/// Throws LineFault unless only blanks follow up to the end of the line.
void require_line_end(const char* p);

/// Text for messages: quoted, shortened, unprintable bytes escaped.
std::string quote(std::string_view text);

/// The text from p up to the next blank or line end, quoted.
std::string quote_word(const char* p);

}  // namespace shardmat::matrix_market
