// Matrix Market coordinate files as entries. Plain text is divided by bytes; compressed text is one share.
#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "kernels/base/error.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/matrix_market_lines.h"
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace {

using namespace matrix_market;

/// Counts of rows, neighbouring ones of a row put together.
class CountRuns {
 public:
  explicit CountRuns(std::vector<RowCount>& out) : out_(out) {}
  void add(std::int64_t row) {
    if (run_.count > 0 && run_.row == row) {
      ++run_.count;
      return;
    }
    finish();
    run_ = {row, 1};
  }
  void finish() {
    if (run_.count > 0) out_.push_back(run_);
    run_.count = 0;
  }

 private:
  std::vector<RowCount>& out_;
  RowCount run_{0, 0};
};

class MatrixMarketEntries final : public EntryReader {
 public:
  MatrixMarketEntries(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits)
      : options_(options),
        limits_(limits),
        source_(TextSource::open(path, limits)),
        header_(read_header(*source_, options.choices.part)) {
    require_coordinate(path, header_);
  }

  std::int64_t rows() const override { return header_.rows; }
  std::int64_t cols() const override { return header_.cols; }
  std::int64_t most_entries() const override {
    const std::int64_t lines = matrix_market::most_entries(*source_, header_);
    std::int64_t entries = 0;
    return __builtin_mul_overflow(lines, is_mirrored(header_) ? 2 : 1, &entries) ? std::numeric_limits<std::int64_t>::max()
                                                                                 : entries;
  }
  std::int64_t bytes_asked() const override { return bytes_for(header_.rows, 0); }
  const InputFile& file() const override { return source_->file(); }
  bool is_divisible() const override { return source_->is_seekable(); }
  bool needs_validation() const override { return false; }

  std::int64_t count(const FileShare& share, const UseCounts& use, const Progress& after_batch) override {
    std::atomic<std::int64_t> lines{0};
    pass(share, "count entries", after_batch, [&](std::string_view piece) {
      const char* const end = piece.data() + piece.size();
      std::int64_t found = 0;
      std::vector<RowCount> counts, mirrored_counts;
      CountRuns runs(counts), mirrored_runs(mirrored_counts);
      for_each_entry(piece, header_, [&](const Place& place, const char* p) {
        ++found;
        runs.add(place.row);
        if (is_mirrored(header_) && place.col != place.row) mirrored_runs.add(place.col);
        return next_line(p, end) - 1;
      });
      runs.finish();
      mirrored_runs.finish();
      use(counts);
      if (!mirrored_counts.empty()) use(mirrored_counts);
      lines.fetch_add(found, std::memory_order_relaxed);
    });
    return lines;
  }

  void read(const FileShare& share, const UseEntries& use, const Progress& after_batch) override {
    const double sign = mirror_sign(header_);
    pass(share, "read entries", after_batch, [&](std::string_view piece) {
      const char* const end = piece.data() + piece.size();
      std::vector<MatrixEntry> entries;
      for_each_entry(piece, header_, [&](const Place& place, const char* p) {
        const double value = parse_entry_value(place, p, end, header_, options_.allow_nonfinite);
        entries.push_back({place.row, place.col, value});
        if (is_mirrored(header_) && place.row != place.col) entries.push_back({place.col, place.row, sign * value});
        return p;
      });
      use(entries);
    });
    source_->file().require_unchanged();
  }

  void require_promised(std::int64_t entries) const override {
    matrix_market::require_promised(source_->file().path(), header_, entries);
  }
  void fail(const TextFault& fault) override { fail_at(*source_, fault); }

 private:
  void pass(const FileShare& share, std::string_view phase, const Progress& after_batch,
            const std::function<void(std::string_view)>& visit) {
    const std::int64_t body = header_.body_offset, bytes = std::max<std::int64_t>(0, file().size() - body);
    const auto start = [&](std::int64_t i) {
      return body + bytes / share.count * i + std::min<std::int64_t>(i, bytes % share.count);
    };
    TextRange range{body};
    if (share.count > 1) range.from = start(share.index), range.to = start(share.index + 1);
    const std::int64_t first = share.count > 1 ? range.from : 0, last = share.count > 1 ? range.to : file().size();
    for_each_piece(*source_, range, limits_, visit,
                   [&](std::int64_t consumed) { report(after_batch, phase, consumed - first, last - first); });
  }

  ReadOptions options_;
  ReadLimits limits_;
  std::unique_ptr<TextSource> source_;
  Header header_;
};

}  // namespace

std::unique_ptr<EntryReader> open_matrix_market_entries(const std::filesystem::path& path, const ReadOptions& options,
                                                        const ReadLimits& limits) {
  return std::make_unique<MatrixMarketEntries>(path, options, limits);
}

}  // namespace shardmat
