#include "partition/readers/text_entries.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "partition/readers/matrix_market.h"

namespace shardmat {
namespace {

void for_each_line_of(std::string_view piece, const std::function<void(const char*)>& visit) {
  const char* const end = piece.data() + piece.size();
  for (const char* line = piece.data(); line < end;
       line = static_cast<const char*>(std::memchr(line, '\n', static_cast<std::size_t>(end - line))) + 1)
    visit(line);
}

class TextEntries final : public EntryReader {
 public:
  TextEntries(std::unique_ptr<TextSource> source, std::unique_ptr<TextEntryFormat> format, const ReadLimits& limits)
      : limits_(limits), source_(std::move(source)), format_(std::move(format)) {}

  std::int64_t rows() const override { return format_->rows(); }
  std::int64_t cols() const override { return format_->cols(); }
  std::shared_ptr<const UnknownList> unknowns() const override { return format_->unknowns(); }
  std::int64_t most_entries() const override {
    constexpr std::int64_t kShortest = 6;  // "1 1 1\n"
    return 2 * (source_->most_text_bytes() / kShortest);
  }
  std::int64_t bytes_asked() const override {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 16;
    return rows() > kMost ? std::numeric_limits<std::int64_t>::max() : 16 * rows();
  }
  const InputFile& file() const override { return source_->file(); }
  bool is_divisible() const override { return false; }
  bool needs_validation() const override { return true; }
  void require_promised(std::int64_t stored) const override {
    if (const std::int64_t promised = format_->promised(); promised >= 0 && stored != promised)
      throw Error(ErrorKind::input,
                  fmt::format("{}: its header promises {} entries, and it has {}; it is truncated or damaged, "
                              "write it again",
                              source_->file().path().string(), promised, stored));
  }
  void fail(const TextFault& fault) override { fail_at(*source_, fault); }

  std::int64_t count(const FileShare&, const UseCounts& use, const Progress& after_batch) override {
    std::atomic<std::int64_t> stored{0};
    pass("count entries", false, after_batch, [&](const std::vector<MatrixEntry>& entries, std::int64_t lines) {
      std::vector<RowCount> counts;
      for (const MatrixEntry& entry : entries) {
        if (!counts.empty() && counts.back().row == entry.row) ++counts.back().count;
        else counts.push_back({entry.row, 1});
      }
      use(counts);
      stored.fetch_add(lines, std::memory_order_relaxed);
    });
    return stored;
  }

  void read(const FileShare&, const UseEntries& use, const Progress& after_batch) override {
    pass("read entries", true, after_batch, [&](const std::vector<MatrixEntry>& entries, std::int64_t) { use(entries); });
    source_->file().require_unchanged();
  }

 private:
  template <class Use>
  void pass(std::string_view phase, bool with_values, const Progress& after_batch, Use&& use) {
    for_each_piece(
        *source_, TextRange{format_->body()}, limits_,
        [&](std::string_view piece) {
          std::vector<MatrixEntry> entries;
          std::int64_t lines = 0;
          for_each_line_of(piece, [&](const char* line) {
            const std::optional<TextEntry> entry = format_->entry_of(line, with_values);
            if (!entry) return;
            ++lines;
            entries.push_back({entry->row, entry->col, entry->value});
            if (entry->mirrored) entries.push_back({entry->col, entry->row, entry->value});
          });
          use(entries, lines);
        },
        [&](std::int64_t consumed) { report(after_batch, phase, consumed, source_->file().size()); });
  }

  ReadLimits limits_;
  std::unique_ptr<TextSource> source_;
  std::unique_ptr<TextEntryFormat> format_;
};

}  // namespace

std::unique_ptr<EntryReader> make_text_entries(std::unique_ptr<TextSource> source, std::unique_ptr<TextEntryFormat> format,
                                               const ReadLimits& limits) {
  return std::make_unique<TextEntries>(std::move(source), std::move(format), limits);
}

void for_each_line(TextSource& source, const ReadLimits& limits, const std::function<void(const char*)>& visit) {
  for_each_piece(source, 0, limits, "find sizes", {}, [&](std::string_view piece) { for_each_line_of(piece, visit); });
}

const char* first_word(const char* line) { return matrix_market::skip_blanks(line); }

}  // namespace shardmat
