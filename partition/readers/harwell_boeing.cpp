// Harwell-Boeing and Rutherford-Boeing files: columns of a matrix in fixed fields of Fortran.
//
//   line 1   title (72 characters), key (8)
//   line 2   lines in all, of pointers, of row indices, of values (and, Harwell-Boeing, of right-hand sides)
//   line 3   type, rows, columns, entries, elemental entries
//   line 4   formats of pointers, indices and values, as (16I5) or (1P,4E20.12)
//   line 5   Harwell-Boeing with right-hand sides: their type and number
// The type has three letters: R real, I integer, P pattern, C complex; U unsymmetric, S symmetric, Z skew-symmetric,
// H Hermitian, R rectangular; A assembled, E elemental. Of S and Z the file has the lower triangle. Indices begin with 1.
// A field may touch the next one. The file is read from its start to its end, by rank 0, which keeps the row indices.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "partition/first_bytes.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/matrix_market.h"
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace {

/// Fields of a line: `count` of them, `width` characters each. `scale`: of numbers without exponent, Fortran's P.
struct Fields {
  int count = 0, width = 0, scale = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

/// Reads a Fortran format such as (16I5), (1P,4E20.12) or (3(1PE25.16)); nothing for any other.
std::optional<Fields> parse_format(std::string_view text) {
  std::string f;
  for (const char c : text)
    if (c != ' ' && c != '\n' && c != '\r') f += upper(c);
  std::size_t at = 0;
  const auto take = [&](char c) { return at < f.size() && f[at] == c ? (++at, true) : false; };
  const auto number = [&]() -> std::optional<int> {
    int value = 0;
    const auto [end, error] = std::from_chars(f.data() + at, f.data() + f.size(), value);
    if (error != std::errc{} || value < 0 || value > 1000) return std::nullopt;
    at = static_cast<std::size_t>(end - f.data());
    return value;
  };
  Fields fields{1, 0, 0};
  int open = 0;
  while (at < f.size() && f[at] != 'I' && f[at] != 'E' && f[at] != 'D' && f[at] != 'F' && f[at] != 'G') {
    if (take('(')) {
      ++open;
    } else if (is_digit(f[at])) {
      const auto count = number();
      if (!count) return std::nullopt;
      if (take('P')) fields.scale = *count, take(',');
      else fields.count *= *count;
    } else {
      return std::nullopt;
    }
  }
  if (at++ >= f.size()) return std::nullopt;
  const auto width = number();
  if (!width || *width < 1 || fields.count < 1 || fields.count > 1000) return std::nullopt;
  fields.width = *width;
  if (take('.') && !number()) return std::nullopt;
  if (take('E') && !number()) return std::nullopt;
  while (open > 0 && take(')')) --open;
  return at == f.size() && open == 0 ? std::optional(fields) : std::nullopt;
}

struct Header {
  std::string type;  ///< in capitals
  std::int64_t rows = 0, cols = 0, entries = 0;
  Fields pointers, indices, values;
  bool pattern() const { return type[0] == 'P'; }
  bool mirrored() const { return type[1] == 'S' || type[1] == 'Z'; }
  double sign() const { return type[1] == 'Z' ? -1 : 1; }
};

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

bool is_type(std::string_view text) {
  if (text.size() < 3) return false;
  const auto one_of = [](char c, std::string_view letters) { return letters.find(upper(c)) != std::string_view::npos; };
  return one_of(text[0], "RIPCQ") && one_of(text[1], "USZHR") && one_of(text[2], "AE");
}

/// The header, with `lines` behind it.
Header read_header(LineCursor& lines) {
  const auto next = [&] {
    const std::string_view line = lines.next();
    if (line.empty()) lines.fail("the file ends in its header; it is truncated, copy or write it again");
    return line;
  };
  next();
  const std::vector<std::int64_t> counts = whole_numbers(next());
  const std::string_view line = next();
  Header header;
  if (!is_type(line)) lines.fail("a file of Harwell-Boeing has the type of the matrix here, such as RUA or RSA");
  header.type.assign(line.substr(0, 3));
  std::transform(header.type.begin(), header.type.end(), header.type.begin(), upper);
  if (header.type[0] == 'C' || header.type[1] == 'H')
    lines.fail(fmt::format(
        "complex matrices ({}) are not supported; write the real and the imaginary part as two real files", header.type));
  if (header.type[2] == 'E')
    lines.fail(fmt::format("elemental matrices ({}) are not supported; assemble the matrix, and write it with the type {}A",
                           header.type, header.type.substr(0, 2)));
  if (header.type[0] == 'Q') lines.fail("auxiliary files of Rutherford-Boeing hold no matrix");
  const std::vector<std::int64_t> sizes = whole_numbers(line.substr(3));
  if (sizes.size() < 3 || sizes[0] < 0 || sizes[1] < 0 || sizes[2] < 0)
    lines.fail("the numbers of rows, columns and entries must follow the type of the matrix; correct the line");
  header.rows = sizes[0], header.cols = sizes[1], header.entries = sizes[2];
  if (header.mirrored() && header.rows != header.cols)
    lines.fail(fmt::format("a symmetric matrix must be square, not {} × {}", header.rows, header.cols));
  const std::string formats(next());
  const auto field = [&](std::size_t begin, std::size_t size, const char* what) {
    const std::string text = begin < formats.size() ? formats.substr(begin, size) : "";
    const auto fields = parse_format(text);
    if (!fields)
      lines.fail(fmt::format("the format {} of the {} is not known; it must be one such as (16I5) or (4E20.12)",
                             matrix_market::quote(text.substr(0, text.find_last_not_of(" \r\n") + 1)), what));
    return *fields;
  };
  header.pointers = field(0, 16, "pointers");
  header.indices = field(16, 16, "row indices");
  if (!header.pattern()) header.values = field(32, 20, "values");
  if (counts.size() >= 5 && counts[4] > 0) next();  // right-hand sides: Harwell-Boeing only
  return header;
}

/// Fixed fields, one after another, over lines. A line with as many words as there should be fields is cut at its blanks:
/// SciPy's fields are narrower than its header says.
class FieldCursor {
 public:
  /// `total`: of all fields.
  FieldCursor(LineCursor& lines, const Fields& fields, std::int64_t total, const char* what)
      : lines_(lines), fields_(fields), left_(total), what_(what) {}

  /// The next field without blanks around it.
  std::string_view next() {
    if (at_ == std::ssize(cut_)) next_line();
    const std::string_view text = cut_[static_cast<std::size_t>(at_++)];
    if (text.empty()) lines_.fail(fmt::format("a {} is missing; the file is truncated, or its formats are wrong", what_));
    return text;
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  void next_line() {
    const std::string_view line = lines_.next();
    if (line.empty()) lines_.fail(fmt::format("the file ends where a {} should be; it is truncated, copy it again", what_));
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(fields_.count, left_));
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
    if (cut_.size() != count) cut_at_columns(line, count);
    left_ -= static_cast<std::int64_t>(count);
    at_ = 0;
  }

  void cut_at_columns(std::string_view line, std::size_t count) {
    cut_.clear();
    const auto width = static_cast<std::size_t>(fields_.width);
    for (std::size_t i = 0; i < count; ++i) {
      std::string_view text = i * width < line.size() ? line.substr(i * width, width) : "";
      while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
      while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
      cut_.push_back(text);
    }
  }

  LineCursor& lines_;
  Fields fields_;
  std::int64_t left_;
  const char* what_;
  std::vector<std::string_view> cut_;  ///< the fields of a line
  std::ptrdiff_t at_ = 0;
};

std::int64_t whole(std::string_view text, const char* what, std::int64_t least, std::int64_t most, const LineCursor& lines) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < least || number > most)
    lines.fail(fmt::format("the {} {} is no whole number from {} to {}; the file is damaged, or its formats are wrong", what,
                           matrix_market::quote(text), least, most));
  return number;
}

/// Fortran's exponents may be D, or only a sign: 1.5-300.
double real(std::string_view text, const Fields& fields, bool allow_nonfinite, const LineCursor& lines) {
  std::string word;
  bool exponent = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = upper(text[i]);
    const bool sign = (c == '+' || c == '-') && i > 0 && (is_digit(text[i - 1]) || text[i - 1] == '.');
    if (c == 'D' || c == 'E' || sign) exponent = true;
    if (sign) word += 'e';
    word += c == 'D' || c == 'E' ? 'e' : text[i];
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
  return exponent || fields.scale == 0 ? value : value / std::pow(10, fields.scale);
}

class HarwellBoeing final : public EntryReader {
 public:
  HarwellBoeing(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits)
      : options_(options), limits_(limits), source_(TextSource::open(path, limits)) {
    lines_.emplace(*source_);
    header_ = read_header(*lines_);
    constexpr std::int64_t kShortest = 1;  // a digit that touches the next field
    if (header_.cols >= source_->most_text_bytes() / kShortest || header_.entries > source_->most_text_bytes() / kShortest)
      lines_->fail(
          fmt::format("its header promises {} columns and {} entries, more than the file has room for; it is "
                      "truncated, or the sizes are wrong",
                      header_.cols, header_.entries));
  }

  std::int64_t rows() const override { return header_.rows; }
  std::int64_t cols() const override { return header_.cols; }
  std::int64_t most_entries() const override { return header_.mirrored() ? 2 * header_.entries : header_.entries; }
  std::int64_t bytes_asked() const override {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 64;
    return header_.rows > kMost ? std::numeric_limits<std::int64_t>::max()
                                : 16 * header_.rows + 8 * header_.cols + 8 * header_.entries;
  }
  const InputFile& file() const override { return source_->file(); }
  bool is_divisible() const override { return false; }
  bool needs_validation() const override { return true; }
  void require_promised(std::int64_t) const override {}
  void fail(const TextFault& fault) override { fail_at(*source_, fault); }

  std::int64_t count(const FileShare&, const UseCounts& use, const Progress& after_batch) override {
    read_structure();
    std::vector<RowCount> counts;
    in_blocks(
        "count entries", after_batch,
        [&](std::int64_t k, std::int64_t col) {
          const std::int64_t row = row_of_[static_cast<std::size_t>(k)];
          counts.push_back({row, 1});
          if (header_.mirrored() && row != col) counts.push_back({col, 1});
        },
        [&] {
          use(counts);
          counts.clear();
        });
    return header_.entries;
  }

  void read(const FileShare&, const UseEntries& use, const Progress& after_batch) override {
    read_structure();
    std::vector<MatrixEntry> entries;
    FieldCursor values(*lines_, header_.values, header_.entries, "value");
    in_blocks(
        "read entries", after_batch,
        [&](std::int64_t k, std::int64_t col) {
          const std::int64_t row = row_of_[static_cast<std::size_t>(k)];
          const double value =
              header_.pattern() ? 1 : real(values.next(), header_.values, options_.allow_nonfinite, *lines_);
          entries.push_back({row, col, value});
          if (header_.mirrored() && row != col) entries.push_back({col, row, header_.sign() * value});
        },
        [&] {
          use(entries);
          entries.clear();
        });
    source_->file().require_unchanged();
  }

 private:
  /// Reads pointers and row indices; the values come next then.
  void read_structure() {
    limits_.require_memory(8 * (header_.cols + 1) + 8 * header_.entries, source_->file().path());
    lines_.emplace(*source_);
    header_ = read_header(*lines_);
    pointers_.resize(static_cast<std::size_t>(header_.cols) + 1);
    FieldCursor pointers(*lines_, header_.pointers, header_.cols + 1, "pointer");
    std::int64_t last = 1;
    for (std::int64_t& pointer : pointers_)
      pointer = last = whole(pointers.next(), "pointer", last, header_.entries + 1, *lines_);
    if (pointers_.front() != 1 || last != header_.entries + 1)
      lines_->fail(fmt::format("the pointers run from {} to {}; they must run from 1 to {}", pointers_.front(), last,
                               header_.entries + 1));
    row_of_.resize(static_cast<std::size_t>(header_.entries));
    FieldCursor indices(*lines_, header_.indices, header_.entries, "row index");
    std::size_t col = 0;
    for (std::int64_t k = 0; k < header_.entries; ++k) {
      while (pointers_[col + 1] <= k + 1) ++col;
      const std::int64_t row = whole(indices.next(), "row index", 1, header_.rows, *lines_) - 1;
      if (header_.mirrored() && row < static_cast<std::int64_t>(col))
        lines_->fail(fmt::format("row {} of column {} is above the diagonal; a symmetric file has the lower triangle only",
                                 row + 1, col + 1));
      row_of_[static_cast<std::size_t>(k)] = row;
    }
  }

  template <class Visit, class HandOver>
  void in_blocks(std::string_view phase, const Progress& after_batch, Visit&& visit, HandOver&& hand_over) {
    const std::int64_t batch = std::max<std::int64_t>(1, limits_.batch_bytes / 64);
    std::int64_t col = 0;
    for (std::int64_t k = 0; k < header_.entries; ++k) {
      while (pointers_[static_cast<std::size_t>(col) + 1] <= k + 1) ++col;
      visit(k, col);
      if ((k + 1) % batch != 0 && k + 1 != header_.entries) continue;
      hand_over();
      report(after_batch, phase, k + 1, header_.entries);
    }
  }

  ReadOptions options_;
  ReadLimits limits_;
  std::unique_ptr<TextSource> source_;
  std::optional<LineCursor> lines_;
  Header header_;
  HostVector<std::int64_t> pointers_, row_of_;  ///< from the first pass on
};

}  // namespace

bool accepts_harwell_boeing(const std::filesystem::path& path) {
  const std::string bytes = first_bytes(path, 512);
  std::string_view text = bytes;
  std::array<std::string_view, 3> lines;
  for (std::string_view& line : lines) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return false;
    line = text.substr(0, end);
    text.remove_prefix(end + 1);
  }
  return whole_numbers(lines[1]).size() >= 4 && is_type(lines[2]) && whole_numbers(lines[2].substr(3)).size() >= 3;
}

std::unique_ptr<EntryReader> open_harwell_boeing(const std::filesystem::path& path, const ReadOptions& options,
                                                 const ReadLimits& limits) {
  return std::make_unique<HarwellBoeing>(path, options, limits);
}

}  // namespace shardmat
