#include "partition/readers/text_numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace shardmat::text_numbers {
namespace {

std::string quoted(const char* p) {
  return matrix_market::quote(std::string_view(p, static_cast<std::size_t>(word_end(p) - p)));
}

}  // namespace

void fail_whole(const char* p, const char* what, std::int64_t least, std::int64_t most) {
  if (*p == '\n') throw LineFault{p, fmt::format("the {} is missing; the line is truncated", what)};
  throw LineFault{p,
                  fmt::format("the {} {} is no whole number from {} to {}; correct the line", what, quoted(p), least, most)};
}

const char* parse_real(const char* p, bool allow_nonfinite, double& value) {
  p = skip_separator(p);
  if (*p == '\n') throw LineFault{p, "the value is missing; the line is truncated"};
  const char* const end = word_end(p);
  const auto [behind, error] = std::from_chars(*p == '+' ? p + 1 : p, end, value);
  if (error == std::errc{} && behind == end && std::isfinite(value)) return end;
  std::string word(p, end);
  for (char& c : word)
    if (c == 'D' || c == 'd') c = 'e';
  word += '\n';
  try {
    matrix_market::parse_value(word.data(), word.data() + word.size(), matrix_market::Field::real, allow_nonfinite, value);
  } catch (LineFault& fault) {
    fault.at = p;
    throw;
  }
  return end;
}

void require_line_end(const char* p) {
  p = skip_separator(p);
  if (*p != '\n') throw LineFault{p, fmt::format("{} follows behind the last number of the line", quoted(p))};
}

}  // namespace shardmat::text_numbers
