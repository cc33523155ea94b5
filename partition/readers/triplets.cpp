// Triplets without a header: "row column value" a line, or "row column" in each line for entries of 1. Read only where the
// user says so and names the first index, because nothing in the file does. Lines that begin with #, % or ! are comments.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/base/shortened.h"
#include "partition/readers/reader_list.h"
#include "partition/readers/text_entries.h"
#include "partition/readers/text_numbers.h"

namespace shardmat {
namespace {

enum class Triangle { both, lower, upper };

bool is_comment(const char* word) { return *word == '\n' || *word == '#' || *word == '%' || *word == '!'; }

class Triplets final : public TextEntryFormat {
 public:
  Triplets(std::int64_t base, Triangle triangle, bool with_values, bool allow_nonfinite)
      : base_(base), triangle_(triangle), with_values_(with_values), allow_nonfinite_(allow_nonfinite) {}

  /// The largest indices are the sizes; with one triangle the matrix is square. Returns true if an index is the base.
  bool find_sizes(TextSource& source, const ReadLimits& limits) {
    std::atomic<bool> has_base{false};
    std::atomic<std::int64_t> rows{0}, cols{0};
    const auto raise = [](std::atomic<std::int64_t>& most, std::int64_t value) {
      for (std::int64_t known = most; known < value && !most.compare_exchange_weak(known, value);) continue;
    };
    for_each_line(source, limits, [&](const char* line) {
      const auto entry = entry_of(line, false);
      if (!entry) return;
      raise(rows, entry->row + 1), raise(cols, entry->col + 1);
      if ((entry->row == 0 || entry->col == 0) && !has_base.load(std::memory_order_relaxed)) has_base = true;
    });
    rows_ = rows, cols_ = cols;
    if (triangle_ != Triangle::both) rows_ = cols_ = std::max(rows_, cols_);
    return has_base;
  }

  std::int64_t rows() const override { return rows_; }
  std::int64_t cols() const override { return cols_; }

  std::optional<TextEntry> entry_of(const char* line, bool with_value) const override {
    using namespace text_numbers;
    const char* p = first_word(line);
    if (is_comment(p)) return std::nullopt;
    constexpr std::int64_t kMost = std::int64_t{1} << 58;
    TextEntry entry;
    p = parse_index(p, "row", kMost, entry.row);
    p = parse_index(p, "column", kMost, entry.col);
    entry.mirrored = triangle_ != Triangle::both && entry.row != entry.col;
    if (entry.mirrored && (entry.row > entry.col) != (triangle_ == Triangle::lower))
      throw LineFault{line,
                      fmt::format("the entry ({}, {}) is not in the {} triangle; take both triangles if the file has all "
                                  "entries",
                                  entry.row + base_, entry.col + base_, triangle_ == Triangle::lower ? "lower" : "upper"),
                      "triangle"};
    if (!with_value) return entry;
    entry.value = 1;
    if (with_values_ && *skip_separator(p) == '\n')
      throw LineFault{p, "the value is missing; the first entry of the file has one, so all must"};
    if (with_values_) p = parse_real(p, allow_nonfinite_, entry.value);
    require_line_end(p);
    return entry;
  }

 private:
  const char* parse_index(const char* p, const char* what, std::int64_t most, std::int64_t& index) const {
    p = text_numbers::parse_whole(p, what, 0, most, index);
    if (index < base_)
      throw LineFault{
          p, fmt::format("the {} is 0, and indices were said to begin with 1; take base 0, or correct the line", what),
          "base"};
    index -= base_;
    return p;
  }

  std::int64_t base_;
  Triangle triangle_;
  bool with_values_;
  bool allow_nonfinite_;
  std::int64_t rows_ = 0, cols_ = 0;
};

Triangle triangle_of(const std::string& word) {
  if (word.empty() || word == "both") return Triangle::both;
  if (word == "lower") return Triangle::lower;
  if (word == "upper") return Triangle::upper;
  throw Error(ErrorKind::usage, fmt::format("the triangle must be lower, upper or both, not '{}'", word), "triangle");
}

/// Whether the first entry has a value. Throws Error(input) for a file that says it is another format.
bool has_values(const std::filesystem::path& path, TextSource& source) {
  using namespace text_numbers;
  LineCursor lines(source);
  for (bool first = true;; first = false) {
    const std::string_view line = lines.next();
    if (line.empty()) return true;  // no entry
    if (first && line.starts_with("%%MatrixMarket"))
      throw Error(
          ErrorKind::input,
          fmt::format("{}: the first line says that this is Matrix Market, whose sizes would be read as an entry; do "
                      "not name triplets as its format",
                      path.string()),
          "input_format");
    const char* p = first_word(line.data());
    if (is_comment(p)) continue;
    for (int number = 0; number < 2; ++number) p = word_end(skip_separator(p));
    return *skip_separator(p) != '\n';
  }
}

}  // namespace

/// Never by itself: the format is taken only by name.
bool accepts_triplets(const std::filesystem::path&) { return false; }

std::unique_ptr<EntryReader> open_triplets(const std::filesystem::path& path, const ReadOptions& options,
                                           const ReadLimits& limits) {
  const InputChoices& choices = options.choices;
  if (!choices.base || (*choices.base != 0 && *choices.base != 1))
    throw Error(
        ErrorKind::usage,
        fmt::format("{}: triplets do not say whether their indices begin with 0 or 1; name the base, and the triangle, "
                    "lower or upper, if the file has one triangle of a symmetric matrix",
                    path.string()),
        "base");
  if (const auto header = look_for_triplets(path); header && header->line != 0)
    throw Error(ErrorKind::input, fmt::format("{}:{}: the line \"{}\" is a header; remove it", path.string(), header->line,
                                              shortened(header->text)));
  auto source = TextSource::open(path, limits);
  auto format = std::make_unique<Triplets>(*choices.base, triangle_of(choices.triangle), has_values(path, *source),
                                           options.allow_nonfinite);
  const bool has_base = format->find_sizes(*source, limits);
  if (*choices.base == 0 && !has_base && format->rows() > 0 && choices.warn)
    choices.warn(
        Error(ErrorKind::input,
              fmt::format("{}: there is no row 0 and no column 0. Do its indices begin with 1? Then name the base 1",
                          path.string()),
              "base"));
  return make_text_entries(std::move(source), std::move(format), limits);
}

namespace {

bool is_triplet(const char* p) {
  try {
    std::int64_t index = 0;
    double value = 0;
    p = text_numbers::parse_whole(p, "row", 0, std::numeric_limits<std::int64_t>::max(), index);
    p = text_numbers::parse_whole(p, "column", 0, std::numeric_limits<std::int64_t>::max(), index);
    if (*text_numbers::skip_separator(p) != '\n') p = text_numbers::parse_real(p, true, value);
    text_numbers::require_line_end(p);
    return true;
  } catch (const LineFault&) {
    return false;
  }
}

}  // namespace

std::optional<TripletHeader> look_for_triplets(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  try {
    const auto source = TextSource::open(path, ReadLimits{1 << 12, 1 << 12});
    LineCursor lines(*source);
    constexpr int kMostComments = 50;
    TripletHeader header;
    for (int i = 0; i < kMostComments; ++i) {
      const std::string_view line = lines.next();
      if (line.empty()) return std::nullopt;
      const char* const p = first_word(line.data());
      if (is_comment(p)) continue;
      if (is_triplet(p)) return header;
      const bool words = std::isalpha(static_cast<unsigned char>(*p)) != 0 || *p == '"';
      if (header.line != 0 || !words) return std::nullopt;
      header.line = lines.line();
      header.text = line.substr(0, line.find_last_not_of("\r\n") + 1);
    }
  } catch (const Error&) {
  }
  return std::nullopt;
}

}  // namespace shardmat
