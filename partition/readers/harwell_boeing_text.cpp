// The text of Harwell-Boeing and Rutherford-Boeing files: headers and fields.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "kernels/base/error.h"
#include "partition/files/first_bytes.h"
#include "partition/readers/complex_values.h"
#include "partition/readers/harwell_boeing.h"
#include "partition/readers/matrix_market.h"

namespace shardmat::harwell_boeing {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

std::string capitals(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), upper);
  return out;
}

bool is_type(std::string_view text) {
  if (text.size() < 3) return false;
  const auto one_of = [](char c, std::string_view letters) { return letters.find(upper(c)) != std::string_view::npos; };
  return one_of(text[0], "RIPCQ") && one_of(text[1], "USZHR") && one_of(text[2], "AE");
}

/// The second line of a file of Rutherford-Boeing without a matrix.
bool is_auxiliary(std::string_view second) {
  constexpr std::string_view kKinds[] = {"ORD", "RHS", "SLN", "EST", "EVL", "SVL", "EVC", "SVC",
                                         "SBV", "SBM", "SBP", "IPT", "ICV", "LVL", "GEO", "AVL"};
  const std::string kind = capitals(second.substr(0, std::min<std::size_t>(3, second.size())));
  return second.size() > 16 && std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds) &&
         whole_numbers(second.substr(16)).size() >= 2;
}

/// The first three lines; empty ones if the file has no three lines.
std::array<std::string, 3> first_lines(const std::filesystem::path& path) {
  const std::string bytes = first_bytes(path, 512);
  std::string_view text = bytes;
  std::array<std::string, 3> lines;
  for (std::string& line : lines) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    line = text.substr(0, end);
    text.remove_prefix(end + 1);
  }
  return lines;
}

void require_vector_room(const TextSource& source, const LineCursor& lines, const VectorList& list) {
  std::int64_t room = source.most_text_bytes();  // at least a digit each
  for (const Vectors& vectors : list.kinds) {
    if (list.rows > 0 && vectors.count > room / list.rows)
      lines.fail(
          fmt::format("its header promises {} vectors of {} entries, more than the file has room for; it is truncated, "
                      "or the sizes are wrong",
                      vectors.count, list.rows));
    room -= vectors.count * list.rows;
  }
}

Fields vector_fields(const std::string& format, const LineCursor& lines) {
  const auto fields = parse_format(format);
  if (!fields)
    lines.fail(fmt::format("the format {} of the vectors is not known; it must be one such as (4E20.12)",
                           matrix_market::quote(format.substr(0, format.find_last_not_of(" \r\n") + 1))));
  return *fields;
}

/// Of Rutherford-Boeing.
VectorList auxiliary_vectors(TextSource& source) {
  LineCursor lines(source);
  lines.next();
  const std::string second(lines.next());
  const std::string kind = capitals(second.substr(0, 3));
  VectorList list;
  const char* const name = kind == "RHS" ? "rhs" : kind == "SLN" ? "solution" : kind == "EST" ? "guess" : nullptr;
  if (name == nullptr) {
    list.refused =
        fmt::format("it holds data of the kind {}; right-hand sides (rhs), solutions (sln) and guesses (est) are read",
                    second.substr(0, 3));
    return list;
  }
  const std::vector<std::int64_t> sizes = whole_numbers(second.substr(16));
  if (sizes[0] < 0 || sizes[1] < 1)
    lines.fail(fmt::format("it promises {} vectors of {} entries; correct the line", sizes[1], sizes[0]));
  list.rows = sizes[0];
  list.kinds.push_back({name, sizes[1], 3});
  const char form = upper(second[4]), type = upper(second[15]);
  if (form != 'D' && form != ' ') list.refused = "its vectors are sparse; write them in full (form d)";
  if (type == 'C') list.refused = "its vectors are complex; write the real and the imaginary part as two files";
  if (!list.refused.empty()) return list;
  require_vector_room(source, lines, list);
  list.fields = vector_fields(std::string(lines.next()), lines);
  list.file_lines = 3 + list.fields.lines(list.rows * sizes[1]);
  return list;
}

/// Of Harwell-Boeing; `lines` are behind the header.
VectorList matrix_vectors(TextSource& source, const Header& header, const LineCursor& lines) {
  VectorList list;
  list.rows = header.rows;
  if (header.vector_line.empty()) return list;
  const std::string type = capitals(header.vector_line.substr(0, 3));
  const std::vector<std::int64_t> counts =
      header.vector_line.size() > 3 ? whole_numbers(header.vector_line.substr(3)) : std::vector<std::int64_t>();
  if (type.size() < 3 || (type[0] != 'F' && type[0] != 'M') || counts.empty() || counts[0] < 1)
    lines.fail("the type of the right-hand sides, such as F, and their number must be here; correct the line");
  if (type[0] == 'M') {
    list.refused =
        "its right-hand sides have the form of the matrix (M); only full ones (F) are read, so write them in full";
    return list;
  }
  list.kinds.push_back({"rhs", counts[0]});
  if (type[1] == 'G') list.kinds.push_back({"guess", counts[0]});
  if (type[2] == 'X') list.kinds.push_back({"solution", counts[0]});
  require_vector_room(source, lines, list);
  list.fields = vector_fields(header.vector_format, lines);
  list.file_lines = header.lines_of_matrix();
  for (Vectors& vectors : list.kinds) {
    vectors.line = list.file_lines;
    list.file_lines += list.fields.lines(vectors.count * list.rows);
  }
  if (const std::int64_t asked = list.file_lines - header.lines_of_matrix(); asked != header.lines.vectors)
    lines.fail(
        fmt::format("the header promises {} lines of vectors, and their format and sizes ask for {}; correct the "
                    "header, or write the file again",
                    header.lines.vectors, asked));
  return list;
}

/// The file ends at this `place`: `line` of the header is missing or cut.
[[noreturn]] void fail_cut(const std::string& place, std::int64_t line, const LineCursor& lines) {
  constexpr const char* kLines[] = {"the title", "the numbers of lines", "the type and the size of the matrix",
                                    "the formats", "the type and the number of the right-hand sides"};
  lines.fail(fmt::format("the file ends {}, {}; it is truncated, or no file of Harwell-Boeing: copy or write it again",
                         place, kLines[line - 1]));
}

/// Compares the numbers of lines in the header with its sizes and formats.
void require_counts(const Header& header, const LineCursor& lines) {
  const LineCounts& promised = header.lines;
  const auto require = [&](const char* what, std::int64_t found, std::int64_t asked) {
    if (found != asked)
      lines.fail(
          fmt::format("line 2 of the header promises {} lines {}, and the sizes and formats ask for {}; correct the "
                      "header, or write the file again",
                      found, what, asked));
  };
  require("of pointers", promised.pointers, header.pointers.lines(header.cols + 1));
  require("of row indices", promised.indices, header.indices.lines(header.entries));
  require("of values", promised.values, header.pattern() ? 0 : header.values.lines(header.entries));
  if (promised.vectors < 0 || promised.vectors > (std::int64_t{1} << 58)) require("of vectors", promised.vectors, 0);
  const std::int64_t of_matrix = promised.pointers + promised.indices + promised.values;
  // Writers that add vectors to a file forget to count them here.
  if (promised.all != of_matrix) require("in all", promised.all, of_matrix + promised.vectors);
}

}  // namespace

std::vector<std::int64_t> whole_numbers(std::string_view text) {
  std::vector<std::int64_t> numbers;
  const char *p = text.data(), *const end = p + text.size();
  while (p < end) {
    if (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
      ++p;
      continue;
    }
    std::int64_t number = 0;
    const auto [behind, error] = std::from_chars(p, end, number);
    if (error != std::errc{}) break;
    numbers.push_back(number);
    p = behind;
  }
  return numbers;
}

Header read_header(LineCursor& lines) {
  const auto next = [&] {
    const std::string_view line = lines.next();
    if (line.empty()) fail_cut(fmt::format("before line {} of its header", lines.line() + 1), lines.line() + 1, lines);
    return line;
  };
  const auto fail = [&](const std::string& what) {
    LineCursor behind = lines;
    if (behind.next().empty()) fail_cut("in this line of its header", lines.line(), lines);
    lines.fail(what);
  };
  next();
  const std::string second(next());
  const std::vector<std::int64_t> counts = whole_numbers(second);
  const std::string_view line = next();
  Header header;
  if (!is_type(line) && is_auxiliary(second))
    lines.fail("this file of Rutherford-Boeing holds vectors or other data beside a matrix, and no matrix");
  if (!is_type(line)) fail("a file of Harwell-Boeing has the type of the matrix here, such as RUA or RSA");
  header.type.assign(line.substr(0, 3));
  std::transform(header.type.begin(), header.type.end(), header.type.begin(), upper);
  if (header.type[0] == 'C' || header.type[1] == 'H')
    lines.fail(
        fmt::format("complex matrices ({}) are not read from Harwell-Boeing files; {}", header.type, kComplexElsewhere));
  if (header.type[2] == 'E')
    lines.fail(fmt::format("elemental matrices ({}) are not supported; assemble the matrix, and write it with the type {}A",
                           header.type, header.type.substr(0, 2)));
  if (header.type[0] == 'Q') lines.fail("auxiliary files of Rutherford-Boeing hold no matrix");
  const std::vector<std::int64_t> sizes = whole_numbers(line.substr(3));
  if (sizes.size() < 3 || sizes[0] < 0 || sizes[1] < 0 || sizes[2] < 0)
    fail("the numbers of rows, columns and entries must follow the type of the matrix; correct the line");
  constexpr std::int64_t kMost = std::int64_t{1} << 58;
  if (sizes[0] > kMost || sizes[1] > kMost || sizes[2] > kMost) fail("the matrix is too large; correct the line");
  header.rows = sizes[0], header.cols = sizes[1], header.entries = sizes[2];
  if (header.mirrored() && header.rows != header.cols)
    lines.fail(fmt::format("a symmetric matrix must be square, not {} × {}", header.rows, header.cols));
  const std::string formats(next());
  const auto field = [&](std::size_t begin, std::size_t size, const char* what) {
    const std::string text = begin < formats.size() ? formats.substr(begin, size) : "";
    const auto fields = parse_format(text);
    if (!fields || (begin < 32 && !fields->whole))
      fail(fmt::format("the format {} of the {} is not known; it must be one such as {}",
                       matrix_market::quote(text.substr(0, text.find_last_not_of(" \r\n") + 1)), what,
                       begin < 32 ? "(16I5)" : "(4E20.12)"));
    return *fields;
  };
  header.pointers = field(0, 16, "pointers");
  header.indices = field(16, 16, "row indices");
  if (!header.pattern()) header.values = field(32, 20, "values");
  const auto count = [&](std::size_t i) { return i < counts.size() ? counts[i] : 0; };
  header.lines = {count(0), count(1), count(2), count(3), count(4)};
  if (header.lines.vectors > 0) {  // Harwell-Boeing only
    header.vector_format = formats.size() > 52 ? formats.substr(52, 20) : "";
    header.vector_line = next();
  }
  require_counts(header, lines);
  return header;
}

std::string_view FieldCursor::next() {
  if (at_ == std::ssize(cut_)) next_line();
  const std::string_view text = cut_[static_cast<std::size_t>(at_++)];
  if (text.empty()) lines_.fail(fmt::format("a {} is missing; the file is truncated, or its formats are wrong", what_));
  return text;
}

void FieldCursor::next_line() {
  const std::string_view line = lines_.next();
  if (line.empty()) lines_.fail(fmt::format("the file ends where a {} should be; it is truncated, copy it again", what_));
  const std::vector<int>& begins = fields_.of_line(line_++);
  const auto count = static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(begins), left_));
  cut_.clear();
  for (std::size_t begin = 0; begin < line.size() && cut_.size() <= count;) {
    if (is_blank(line[begin])) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < line.size() && !is_blank(line[end])) ++end;
    cut_.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  if (fields_.gaps || cut_.size() != count) cut_at_columns(line, begins, count);
  left_ -= static_cast<std::int64_t>(count);
  at_ = 0;
}

void FieldCursor::cut_at_columns(std::string_view line, const std::vector<int>& begins, std::size_t count) {
  cut_.clear();
  const auto width = static_cast<std::size_t>(fields_.width);
  std::size_t end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::size_t>(begins[i]);
    end = begin + width;
    std::string_view text = begin < line.size() ? line.substr(begin, width) : "";
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    cut_.push_back(text);
  }
  constexpr std::size_t kCard = 72;  // behind it are numbers of lines
  for (std::size_t i = end; i < std::min(kCard, line.size()); ++i)
    if (!is_blank(line[i]))
      lines_.fail(
          fmt::format("there is text in column {}, where the format has no {}; the line is damaged, or the format is "
                      "wrong",
                      i + 1, what_));
}

double real(std::string_view text, const Fields& fields, bool allow_nonfinite, const LineCursor& lines) {
  std::string word;
  bool exponent = false, point = false, digit = false;
  const std::string_view number = text.substr(std::min<std::size_t>(text.size(), text.starts_with('+') ? 1 : 0));
  for (std::size_t i = 0; i < number.size(); ++i) {
    const char c = upper(number[i]);
    const bool sign = (c == '+' || c == '-') && i > 0 && (is_digit(number[i - 1]) || number[i - 1] == '.');
    const bool letter = (c == 'D' || c == 'E') && digit;
    if (letter || sign) exponent = true;
    if (sign) word += 'e';
    if (!exponent && c == '.') point = true;
    if (is_digit(c)) digit = true;
    word += letter ? 'e' : number[i];
  }
  // Decimals and scale become part of the exponent, so that nothing is rounded twice.
  const int shift = digit ? (point ? 0 : fields.decimals) + (exponent ? 0 : fields.scale) : 0;
  if (shift != 0) {
    int stated = 0;
    const std::size_t at = word.find('e');
    const std::size_t from = std::min(word.size(), at == std::string::npos ? at : at + (word[at + 1] == '+' ? 2 : 1));
    const auto [end, error] = std::from_chars(word.data() + from, word.data() + word.size(), stated);
    if (at != std::string::npos && (error != std::errc{} || end != word.data() + word.size() || std::abs(stated) > 100'000))
      lines.fail(fmt::format("the value {} is no number; correct the line", matrix_market::quote(text)));
    word = fmt::format("{}e{}", word.substr(0, at), stated - shift);
  }
  word += '\n';
  double value = 0;
  try {
    const char* const end = matrix_market::parse_value(word.data(), word.data() + word.size(), matrix_market::Field::real,
                                                       allow_nonfinite, value);
    matrix_market::require_line_end(end);
  } catch (const LineFault& fault) {
    lines.fail(fault.what, fault.setting);
  }
  return value;
}

void require_lines(LineCursor& lines, std::int64_t promised) {
  std::int64_t found = lines.line();
  for (std::string_view line = lines.next(); !line.empty(); line = lines.next())
    if (!std::all_of(line.begin(), line.end(), is_blank)) found = lines.line();
  if (found != promised)
    lines.fail(
        fmt::format("the file has {} lines, and its header promises {}; a line is missing or comes twice, so its "
                    "numbers may have moved: copy or write it again",
                    found, promised));
}

void require_room(const TextSource& source, const Header& header, const LineCursor& lines) {
  const std::int64_t room = source.most_text_bytes();  // at least a digit each, which touches the next field
  if (header.cols >= room || header.entries > room)
    lines.fail(
        fmt::format("its header promises {} columns and {} entries, more than the file has room for; it is truncated, or "
                    "the sizes are wrong",
                    header.cols, header.entries));
}

bool is_matrix_file(const std::filesystem::path& path) {
  const auto lines = first_lines(path);
  return whole_numbers(lines[1]).size() >= 4 && is_type(lines[2]) && whole_numbers(lines[2].substr(3)).size() >= 3;
}

bool is_auxiliary_file(const std::filesystem::path& path) { return is_auxiliary(first_lines(path)[1]); }

VectorList vectors_of(TextSource& source) {
  LineCursor lines(source);
  lines.next();
  if (is_auxiliary(lines.next())) return auxiliary_vectors(source);
  LineCursor again(source);
  const Header header = read_header(again);
  require_room(source, header, again);
  return matrix_vectors(source, header, again);
}

}  // namespace shardmat::harwell_boeing
