// Matrices as FreeFEM prints them: ofstream("A.txt") << A.
//
//   "#  HashMatrix Matrix (COO) 0x…", a comment, then a line "rows columns entries half fortran state type": indices begin
//   with 0, or with 1 if fortran is 1
//   "# Sparse Matrix (Morse)  0x…", two comments, then a line "rows columns half entries": indices begin with 1
// Then a line "row column value" for each entry. If half is not 0, the file has the lower triangle of a symmetric matrix.
// (FreeFEM sources, HashMatrix.hpp; version 3 has the second form.)
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/error.h"
#include "partition/files/first_bytes.h"
#include "partition/readers/complex_values.h"
#include "partition/readers/reader_list.h"
#include "partition/readers/text_entries.h"
#include "partition/readers/text_numbers.h"

namespace shardmat {
namespace {

enum class Form { coordinates, morse };

/// By the first line.
std::optional<Form> form_of(std::string_view line) {
  if (!line.starts_with('#')) return std::nullopt;
  if (line.find("HashMatrix Matrix (COO)") != std::string_view::npos) return Form::coordinates;
  if (line.find("Sparse Matrix (Morse)") != std::string_view::npos) return Form::morse;
  return std::nullopt;
}

class FreeFem final : public TextEntryFormat {
 public:
  FreeFem(TextSource& source, bool allow_nonfinite) : allow_nonfinite_(allow_nonfinite) {
    LineCursor lines(source);
    const std::optional<Form> form = form_of(lines.next());
    if (!form) lines.fail("the first line must be the one that FreeFEM prints: #  HashMatrix Matrix (COO)");
    std::string_view line = lines.next();
    while (line.starts_with('#')) line = lines.next();
    if (line.empty()) lines.fail("the file ends in its header; it is truncated, print it again");
    try {
      read_sizes(line.data(), *form);
    } catch (const LineFault& fault) {
      lines.fail(fault.what);
    }
    if (half_ && rows_ != cols_)
      lines.fail(fmt::format("a matrix of which half is stored must be square, not {} × {}", rows_, cols_));
    body_ = lines.offset();
  }

  std::int64_t rows() const override { return rows_; }
  std::int64_t cols() const override { return cols_; }
  std::int64_t body() const override { return body_; }
  std::int64_t promised() const override { return promised_; }

  std::optional<TextEntry> entry_of(const char* line, bool with_value) const override {
    using namespace text_numbers;
    const char* p = first_word(line);
    if (*p == '\n') return std::nullopt;
    TextEntry entry;
    p = parse_whole(p, "row", base_, rows_ - 1 + base_, entry.row);
    p = parse_whole(p, "column", base_, cols_ - 1 + base_, entry.col);
    entry.row -= base_, entry.col -= base_;
    entry.mirrored = half_ && entry.row != entry.col;
    if (entry.mirrored && entry.row < entry.col)
      throw LineFault{line,
                      fmt::format("the entry ({}, {}) is above the diagonal, and the header says that the file has the "
                                  "lower triangle of a symmetric matrix",
                                  entry.row + base_, entry.col + base_)};
    if (!with_value) return entry;
    if (*skip_separator(p) == '(')
      throw LineFault{line,
                      fmt::format("its values are complex, which are not read from FreeFEM files; {}", kComplexElsewhere)};
    require_line_end(parse_real(p, allow_nonfinite_, entry.value));
    return entry;
  }

 private:
  void read_sizes(const char* p, Form form) {
    using namespace text_numbers;
    constexpr std::int64_t kMost = std::int64_t{1} << 58;
    std::int64_t half = 0, fortran = 0;
    p = parse_whole(p, "number of rows", 0, kMost, rows_);
    p = parse_whole(p, "number of columns", 0, kMost, cols_);
    if (form == Form::morse) p = parse_whole(p, "mark of half a matrix", 0, 2, half);
    p = parse_whole(p, "number of entries", 0, kMost, promised_);
    if (form == Form::coordinates) {
      p = parse_whole(p, "mark of half a matrix", 0, 2, half);
      p = parse_whole(p, "first index", 0, 1, fortran);
    }
    base_ = form == Form::morse ? 1 : fortran;
    half_ = half != 0;
  }

  bool allow_nonfinite_, half_ = false;
  std::int64_t rows_ = 0, cols_ = 0, promised_ = 0, base_ = 0, body_ = 0;
};

}  // namespace

bool accepts_freefem(const std::filesystem::path& path) {
  const std::string bytes = first_bytes(path, 200);
  return form_of(std::string_view(bytes).substr(0, bytes.find('\n'))).has_value();
}

std::unique_ptr<EntryReader> open_freefem(const std::filesystem::path& path, const ReadOptions& options,
                                          const ReadLimits& limits) {
  auto source = TextSource::open(path, limits);
  auto format = std::make_unique<FreeFem>(*source, options.allow_nonfinite);
  return make_text_entries(std::move(source), std::move(format), limits);
}

}  // namespace shardmat
