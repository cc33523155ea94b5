// Header and numbers of Matrix Market text.
#include <fmt/format.h>
#include <locale.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "partition/files/exact_integers.h"
#include "partition/readers/complex_values.h"
#include "partition/readers/matrix_market.h"

#ifdef SHARDMAT_HAVE_FAST_FLOAT
#include <fast_float/fast_float.h>
#endif

namespace shardmat::matrix_market {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  for (std::size_t i = 0; i < line.size();) {
    std::size_t end = i;
    while (end < line.size() && !is_space(line[end])) ++end;
    if (end > i) words.push_back(line.substr(i, end - i));
    i = end + 1;
  }
  return words;
}

std::string lower(std::string_view word) {
  std::string text(word);
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

[[noreturn]] void fail_word(const LineCursor& lines, const char* what, const std::string& word,
                            const std::vector<std::string>& choices) {
  const std::string near = nearest(word, choices);
  lines.fail(fmt::format("the {} {} is unknown; it must be {}{}", what, quote(word), join_choices(choices),
                         near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

Field field_of(const LineCursor& lines, const std::string& word) {
  if (word == "real") return Field::real;
  if (word == "integer") return Field::integer;
  if (word == "unsigned-integer") return Field::unsigned_integer;  // SciPy's, of unsigned types
  if (word == "pattern") return Field::pattern;
  if (word == "complex") return Field::complex;
  fail_word(lines, "field", word, {"real", "integer", "pattern", "complex"});
}

Symmetry symmetry_of(const LineCursor& lines, const std::string& word) {
  if (word == "general") return Symmetry::general;
  if (word == "symmetric") return Symmetry::symmetric;
  if (word == "skew-symmetric") return Symmetry::skew_symmetric;
  if (word == "hermitian") return Symmetry::hermitian;
  fail_word(lines, "symmetry", word, {"general", "symmetric", "skew-symmetric", "hermitian"});
}

void read_banner(LineCursor& lines, Header& header) {
  const std::string_view first = lines.next();
  if (first.empty()) lines.fail("the file is empty; copy or write it again");
  const std::vector<std::string_view> words = words_of(first);
  if (words.empty() || lower(words[0]) != "%%matrixmarket")
    lines.fail(
        fmt::format("this is no Matrix Market file: it must start with \"%%MatrixMarket matrix coordinate real "
                    "general\" or the like, not with {}",
                    quote(first.substr(0, first.size() - 1))));
  if (words.size() != 5)
    lines.fail(
        fmt::format("the first line has {} words; it must have five, such as \"%%MatrixMarket matrix coordinate "
                    "real general\"",
                    words.size()));
  if (lower(words[1]) != "matrix") fail_word(lines, "object", lower(words[1]), {"matrix"});
  const std::string layout = lower(words[2]);
  if (layout != "coordinate" && layout != "array") fail_word(lines, "format", layout, {"coordinate", "array"});
  header.layout = layout == "array" ? Layout::array : Layout::coordinate;
  header.field = field_of(lines, lower(words[3]));
  header.symmetry = symmetry_of(lines, lower(words[4]));
  if (header.symmetry == Symmetry::hermitian && header.field != Field::complex)
    lines.fail("only a complex matrix is hermitian; declare it symmetric");
  if (header.field == Field::pattern && header.symmetry == Symmetry::skew_symmetric)
    lines.fail("a pattern cannot be skew-symmetric; give values or declare it symmetric or general");
  if (header.field == Field::pattern && header.layout == Layout::array)
    lines.fail("an array cannot be a pattern; write it as real or integer");
}

std::int64_t parse_size(const LineCursor& lines, std::string_view word) {
  std::int64_t size = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
  if (error != std::errc{} || end != word.data() + word.size() || size < 0)
    lines.fail(
        fmt::format("the size {} is no whole number from 0 to 9223372036854775807; correct the size line", quote(word)));
  return size;
}

/// The next line that is neither blank nor a comment.
std::string_view next_content(LineCursor& lines) {
  while (true) {
    const std::string_view line = lines.next();
    if (line.empty()) lines.fail("the file ends before its size line; it is truncated, copy or write it again");
    const char first = *skip_blanks(line.data());
    if (first != '\n' && first != '%') return line;
  }
}

void read_sizes(LineCursor& lines, Header& header) {
  const std::string_view line = next_content(lines);
  const std::vector<std::string_view> words = words_of(line);
  const std::size_t wanted = header.layout == Layout::coordinate ? 3 : 2;
  if (words.size() != wanted)
    lines.fail(fmt::format("the size line {} has {} numbers; it must have {}", quote(line.substr(0, line.size() - 1)),
                           words.size(), wanted == 3 ? "three: rows, columns and entries" : "two: rows and columns"));
  header.rows = parse_size(lines, words[0]);
  header.cols = parse_size(lines, words[1]);
  if (header.layout == Layout::coordinate) header.entries = parse_size(lines, words[2]);
  else if (__builtin_mul_overflow(header.rows, header.cols, &header.entries))
    lines.fail("the array has more than 9223372036854775807 entries; correct the size line");
  header.size_line = lines.line();
  header.body_offset = lines.offset();
  if (header.symmetry != Symmetry::general && header.rows != header.cols)
    lines.fail(fmt::format("a symmetric or skew-symmetric matrix must be square, not {} × {}; declare it general",
                           header.rows, header.cols));
}

const char* word_end(const char* p) {
  while (*p != ' ' && *p != '\t' && *p != '\r' && *p != '\n') ++p;
  return p;
}

/// What the fast parsers leave: numbers of extreme size, and Fortran's exponent letter D.
std::optional<double> parse_unusual(std::string text) {
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  for (char& c : text)
    if (c == 'd' || c == 'D') c = 'e';
  if (text.empty() || text.find_first_not_of("0123456789+-.eE") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = ::strtod_l(text.c_str(), &end, plain);
  if (end != text.c_str() + text.size()) return std::nullopt;
  return value;
}

/// True for a number such as 1,5.
bool has_decimal_comma(std::string word) {
  const std::size_t comma = word.find(',');
  if (comma == std::string::npos) return false;
  word[comma] = '.';
  return parse_unusual(word).has_value();
}

/// What to do about a word that is no number.
std::string_view remedy_for(std::string_view word) {
  if (has_decimal_comma(std::string(word))) return "write a point instead of the comma before its decimals";
  // Some versions of SciPy cut numbers of f32 off before the exponent and fill the rest with NUL.
  if (word.find('\0') != std::string_view::npos)
    return "the program that wrote it cut it off, as some versions of SciPy do with arrays of f32; write them as f64";
  return "correct or remove the line";
}

/// Parses the word at p by the slow way.
const char* parse_value_slowly(const char* p, double& value) {
  const char* end = word_end(p);
  const std::string_view word(p, static_cast<std::size_t>(end - p));
  const std::optional<double> parsed = parse_unusual(std::string(word));
  if (!parsed) throw LineFault{p, fmt::format("the value {} is no number; {}", quote(word), remedy_for(word))};
  if (std::isinf(*parsed))
    throw LineFault{
        p, fmt::format("the value {} is too large for a 64-bit floating point number; scale the matrix", quote(word))};
  value = *parsed;
  return end;
}

/// True if the text of a number that is not finite says so, instead of being too large.
bool names_nonfinite(const char* first) {
  const char letter = *first == '-' ? first[1] : *first;
  return letter == 'i' || letter == 'I' || letter == 'n' || letter == 'N';
}

bool is_word_end(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace

const char* parse_part(const char* p, const char* end, ComplexPart part, bool allow_nonfinite, double& value) {
  double other = 0;
  const bool real = part != ComplexPart::imaginary;
  p = parse_value(p, end, Field::real, allow_nonfinite, real ? value : other);
  return parse_value(skip_blanks(p), end, Field::real, allow_nonfinite, real ? other : value);
}

Header read_header(TextSource& source, ComplexPart part) {
  LineCursor lines(source);
  Header header;
  read_banner(lines, header);
  header.part = part;
  const bool complex = header.field == Field::complex;
  const std::string file = source.file().path().string();
  if (complex && part == ComplexPart::none)
    lines.fail(header.layout == Layout::array ? complex_vector_refused(file) : complex_matrix_refused(file));
  if (!complex && part != ComplexPart::none) lines.fail(kNotComplex);
  read_sizes(lines, header);
  return header;
}

std::int64_t most_entries(const TextSource& source, const Header& header) {
  const std::int64_t shortest =  // "1\n", "1 1\n" or "1 1 1\n"; the last line may lack its '\n'
      header.layout == Layout::array   ? 2
      : header.field == Field::pattern ? 4
                                       : 6;
  return std::min(header.entries, std::max<std::int64_t>(0, source.most_text_bytes() - header.body_offset) / shortest);
}

const char* parse_value(const char* p, const char* end, Field field, bool allow_nonfinite, double& value) {
  if (*p == '\n') throw LineFault{p, "the value is missing; the line is truncated"};
  const char* first = p + (*p == '+' && p[1] != '-' ? 1 : 0);
#ifdef SHARDMAT_HAVE_FAST_FLOAT
  auto [behind, error] = fast_float::from_chars(first, end, value);
#else
  auto [behind, error] = std::from_chars(first, end, value);
#endif
  if (error != std::errc{} || !is_word_end(*behind) || (std::isinf(value) && !names_nonfinite(first))) {
    behind = parse_value_slowly(p, value);
  } else if (!std::isfinite(value) && !allow_nonfinite) {
    throw LineFault{
        p, fmt::format("the value {} is not finite; correct it, or accept values that are not finite", quote_word(p)),
        "allow_nonfinite"};
  }
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool is_whole = field == Field::integer || field == Field::unsigned_integer;
  if (field == Field::unsigned_integer && *first == '-')
    throw LineFault{p, fmt::format("the value {} is negative but the field is unsigned-integer; declare the field integer",
                                   quote_word(p))};
  if (is_whole && !std::all_of(first + (*first == '-' ? 1 : 0), behind, is_digit))
    throw LineFault{p, fmt::format("the value {} is no whole number but the field is {}; declare the field real",
                                   quote_word(p), field == Field::integer ? "integer" : "unsigned-integer")};
  std::int64_t whole = 0;
  std::uint64_t natural = 0;
  if (is_whole && behind - first > 18 &&
      (field == Field::integer ? std::from_chars(first, behind, whole).ec : std::from_chars(first, behind, natural).ec) !=
          std::errc{})
    throw LineFault{p, fmt::format("the value {} does not fit a 64-bit integer; declare the field real", quote_word(p))};
  if (is_whole && behind - first > 15) {  // digits, and a sign; 2^53 has 16
    if (field == Field::integer) std::from_chars(first, behind, whole);
    else std::from_chars(first, behind, natural);
    if (!is_exact_in_f64(whole) || !is_exact_in_f64(natural))
      throw LineFault{p,
                      fmt::format("the value {} {}; declare the field real to have it rounded", quote_word(p), kNotExact)};
  }
  return behind;
}

void require_line_end(const char* p) {
  p = skip_blanks(p);
  if (*p != '\n')
    throw LineFault{p, fmt::format("{} follows after the last number of the entry; an entry must stand on a line of its own",
                                   quote_word(p))};
}

std::string quote(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string out = "\"";
  for (const char c : text.substr(0, kShown)) {
    if (c == '\t' || c == '\r') out += c == '\t' ? "\\t" : "\\r";
    else if (c >= ' ' && c <= '~') out += c;
    else out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return out + (text.size() > kShown ? "…\"" : "\"");
}

std::string quote_word(const char* p) { return quote(std::string_view(p, static_cast<std::size_t>(word_end(p) - p))); }

}  // namespace shardmat::matrix_market
