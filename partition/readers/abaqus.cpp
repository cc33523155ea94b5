// Abaqus' *MATRIX OUTPUT: JOB_STIF1.mtx, JOB_MASS1.mtx … in one of its three styles.
//
//   MATRIX INPUT (default) and LABELS    "node, dof, node, dof, value" a line
//   COORDINATE                           "row column value" a line; indices begin with 1
// Lines that begin with ** are comments, and others with * are keywords: after "*MATRIX INPUT, …, TYPE=UNSYMMETRIC" entries
// stand for themselves. Else the file has one triangle of a symmetric matrix, which is expanded; a file that has an entry in
// both of its places has both triangles, and is not. Unknowns are sorted by node, then degree of freedom.
// (Abaqus Keywords Reference: *MATRIX GENERATE, *MATRIX OUTPUT, *MATRIX INPUT)
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/files/first_bytes.h"
#include "partition/readers/node_unknowns.h"
#include "partition/readers/reader_list.h"
#include "partition/readers/text_entries.h"
#include "partition/readers/text_numbers.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMostLabel = std::int64_t{1} << 58;

/// A line: two unknowns, or with dof 0 two indices.
struct Line {
  NodeUnknown row{}, col{};
  double value = 0;
};

class Abaqus final : public TextEntryFormat {
 public:
  explicit Abaqus(bool allow_nonfinite) : allow_nonfinite_(allow_nonfinite) {}

  /// Goes through the text for its style, its unknowns, and whether it has one triangle.
  void survey(TextSource& source, const ReadLimits& limits) {
    // A line has a pair of unknowns, 32 bytes, and its text is rarely shorter than 10.
    limits.require_memory(4 * source.most_text_bytes(), source.file().path());
    std::mutex mutex;
    UnknownList unknowns;
    std::size_t sorted = kLeastSorted;
    std::vector<std::pair<NodeUnknown, NodeUnknown>> below, above;  // the diagonal
    std::atomic<bool> unsymmetric{false};
    std::atomic<int> numbers{0};
    for_each_piece(source, 0, limits, "find unknowns", {}, [&](std::string_view piece) {
      UnknownList found;
      std::vector<std::pair<NodeUnknown, NodeUnknown>> low, high;
      for (std::size_t begin = 0; begin < piece.size(); begin = piece.find('\n', begin) + 1) {
        const char* const line = piece.data() + begin;
        if (is_unsymmetric(line)) unsymmetric = true;
        if (!has_entry(line)) continue;
        const int count = numbers_in(line);
        int known = 0;
        if (!numbers.compare_exchange_strong(known, count) && known != count)
          throw LineFault{
              line, fmt::format("the line has {} numbers, and others have {}; all must have the same style", count, known)};
        const Line one = parse(line, count, false);
        found.push_back(one.row), found.push_back(one.col);
        if (one.row > one.col) low.emplace_back(one.row, one.col);
        else if (one.row < one.col) high.emplace_back(one.col, one.row);
      }
      sort_unknowns(found);
      const std::scoped_lock lock(mutex);
      unknowns.insert(unknowns.end(), found.begin(), found.end());
      below.insert(below.end(), low.begin(), low.end());
      above.insert(above.end(), high.begin(), high.end());
      if (unknowns.size() > 2 * sorted) sort_unknowns(unknowns), sorted = std::max(kLeastSorted, unknowns.size());
    });
    sort_unknowns(unknowns);
    numbers_ = numbers;
    if (numbers_ == 3) {
      rows_ = unknowns.back().node;
    } else {
      rows_ = std::ssize(unknowns);
      unknowns_ = std::make_shared<const UnknownList>(std::move(unknowns));
    }
    mirrored_ = !unsymmetric && !meet(below, above);
  }

  std::int64_t rows() const override { return rows_; }
  std::int64_t cols() const override { return rows_; }
  std::shared_ptr<const UnknownList> unknowns() const override { return unknowns_; }

  std::optional<TextEntry> entry_of(const char* line, bool with_value) const override {
    if (!has_entry(line)) return std::nullopt;
    const Line one = parse(line, numbers_, with_value);
    TextEntry entry;
    entry.row = numbers_ == 3 ? one.row.node - 1 : place_of(*unknowns_, one.row);
    entry.col = numbers_ == 3 ? one.col.node - 1 : place_of(*unknowns_, one.col);
    if (entry.row < 0 || entry.col < 0 || entry.row >= rows_ || entry.col >= rows_)
      throw LineFault{line, "the file was changed while it was read; read it again when its writer is done"};
    entry.value = one.value;
    entry.mirrored = mirrored_ && entry.row != entry.col;
    return entry;
  }

 private:
  static constexpr std::size_t kLeastSorted = 1 << 16;

  static bool has_entry(const char* line) {
    const char c = *first_word(line);
    return c != '\n' && c != '*';
  }

  /// True for a keyword line with TYPE=UNSYMMETRIC.
  static bool is_unsymmetric(const char* line) {
    if (*first_word(line) != '*') return false;
    std::string text;
    for (const char* p = line; *p != '\n' && text.size() < 1000; ++p)
      if (*p != ' ') text += *p >= 'a' && *p <= 'z' ? static_cast<char>(*p - 'a' + 'A') : *p;
    return !text.starts_with("**") && text.find("TYPE=UNSYMMETRIC") != std::string::npos;
  }

  static int numbers_in(const char* line) {
    int count = 0;
    for (const char* p = first_word(line); *p != '\n'; p = text_numbers::skip_separator(p)) {
      while (!text_numbers::is_end(*p)) ++p;
      if (++count > 5) break;
    }
    if (count != 3 && count != 5)
      throw LineFault{line, fmt::format("the line has {} numbers; Abaqus writes 5 (node, dof, node, dof, value) or 3 (row, "
                                        "column, value)",
                                        count > 5 ? "more than 5" : std::to_string(count))};
    return count;
  }

  /// The second word of a line, or its end.
  static const char* skip_word(const char* line) {
    const char* p = first_word(line);
    while (!text_numbers::is_end(*p)) ++p;
    return *p == '\n' ? p : text_numbers::skip_separator(p);
  }

  [[noreturn]] static void fail_negative(const char* line) {
    throw LineFault{line,
                    "a row or a column is negative, and in style COORDINATE they count from 1. Nodes that Abaqus added have "
                    "negative numbers: have it write FORMAT=LABELS, a line of node, degree of freedom, node, degree of "
                    "freedom and value"};
  }

  Line parse(const char* line, int numbers, bool with_value) const {
    using namespace text_numbers;
    Line one;
    const std::int64_t least = numbers == 3 ? 1 : -kMostLabel;  // nodes that Abaqus added have negative numbers
    if (numbers == 3 && (*first_word(line) == '-' || *first_word(skip_word(line)) == '-')) fail_negative(line);
    const char* p = parse_whole(line, numbers == 3 ? "row" : "node", least, kMostLabel, one.row.node);
    if (numbers == 5) p = parse_whole(p, "degree of freedom", 0, kMostLabel, one.row.dof);
    p = parse_whole(p, numbers == 3 ? "column" : "node", least, kMostLabel, one.col.node);
    if (numbers == 5) p = parse_whole(p, "degree of freedom", 0, kMostLabel, one.col.dof);
    if (with_value) require_line_end(parse_real(p, allow_nonfinite_, one.value));
    return one;
  }

  /// True if the two lists, which get sorted, have a common pair.
  template <class Pairs>
  static bool meet(Pairs& a, Pairs& b) {
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
      if (*i == *j) return true;
      if (*i < *j) ++i;
      else ++j;
    }
    return false;
  }

  bool allow_nonfinite_;
  std::shared_ptr<const UnknownList> unknowns_;  ///< sorted; null in style COORDINATE, which has indices
  int numbers_ = 0;                              ///< of a line
  std::int64_t rows_ = 0;
  bool mirrored_ = true;
};

/// JOB_STIF1.mtx, JOB_MASS2.mtx and others of *MATRIX OUTPUT.
bool has_name_of_output(const std::filesystem::path& path) {
  std::string stem = path.stem().string();
  while (!stem.empty() && stem.back() >= '0' && stem.back() <= '9') stem.pop_back();
  return stem.ends_with("_STIF") || stem.ends_with("_MASS") || stem.ends_with("_DMPV") || stem.ends_with("_DMPS");
}

}  // namespace

bool accepts_abaqus(const std::filesystem::path& path) {
  if (path.extension() != ".mtx") return false;
  const std::string bytes = first_bytes(path, 1 << 14);
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.size(), bytes.find('\n', begin));
    const std::string line = bytes.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("%%")) return false;
    if (line.empty() || line.front() == '\r') continue;
    if (line.front() == '*') {
      if (line.starts_with("**")) continue;
      return true;
    }
    const bool numbers = line.find_first_not_of("0123456789+-.,eEdDnaifNAIF \t\r") == std::string::npos;
    return numbers && (line.find(',') != std::string::npos || has_name_of_output(path));
  }
  return false;
}

std::unique_ptr<EntryReader> open_abaqus(const std::filesystem::path& path, const ReadOptions& options,
                                         const ReadLimits& limits) {
  auto source = TextSource::open(path, limits);
  auto format = std::make_unique<Abaqus>(options.allow_nonfinite);
  format->survey(*source, limits);
  return make_text_entries(std::move(source), std::move(format), limits);
}

}  // namespace shardmat
