// Whole numbers in the lines of text formats other than Matrix Market. Internal to readers/.
#pragma once

#include <cstdint>
#include <string_view>

#include "partition/readers/matrix_market.h"

namespace shardmat::text_numbers {

/// Skips blanks and at most one comma.
inline const char* skip_separator(const char* p) {
  p = matrix_market::skip_blanks(p);
  return *p == ',' ? matrix_market::skip_blanks(p + 1) : p;
}

/// True where a number may end.
inline bool is_end(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ','; }

inline const char* word_end(const char* p) {
  while (!is_end(*p)) ++p;
  return p;
}

/// Throws LineFault: what begins at p is missing, or no whole number from `least` to `most`.
[[noreturn]] void fail_whole(const char* p, const char* what, std::int64_t least, std::int64_t most);

/// Parses a whole number behind separators. Returns the position after it. Throws as fail_whole().
inline const char* parse_whole(const char* p, const char* what, std::int64_t least, std::int64_t most,
                               std::int64_t& number) {
  p = skip_separator(p);
  const char* const first = p;
  const bool negative = *p == '-';
  if (negative || *p == '+') ++p;
  const char* const digits = p;
  std::uint64_t value = 0;
  for (unsigned digit; (digit = static_cast<unsigned char>(*p) - unsigned{'0'}) <= 9; ++p) value = value * 10 + digit;
  constexpr std::ptrdiff_t kMostDigits = 18;  // which no int64 overflows
  if (p == digits || p - digits > kMostDigits || !is_end(*p)) fail_whole(first, what, least, most);
  number = negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
  if (number < least || number > most) fail_whole(first, what, least, most);
  return p;
}

/// Parses a real number behind separators; Fortran's exponent letter D is taken. Returns the position after it. Throws
/// LineFault.
const char* parse_real(const char* p, bool allow_nonfinite, double& value);

/// Throws LineFault unless only separators follow up to the end of the line.
void require_line_end(const char* p);

}  // namespace shardmat::text_numbers
