// IJ matrices of hypre as entries: each share reads whole files.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/parallel.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/hypre.h"
#include "partition/readers/reader_list.h"
#include "partition/readers/text_numbers.h"

namespace shardmat {
namespace {

using hypre::Part;

constexpr std::int64_t kBlock = 1 << 15;  ///< entries of a binary file at a time

class HypreEntries final : public EntryReader {
 public:
  HypreEntries(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits)
      : options_(options), limits_(limits), all_(hypre::open_parts(path, false)), first_(all_.parts.front().path) {
    std::int64_t begin = 0;
    for (const Part& part : all_.parts) {
      begins_.push_back(begin);
      begin += part.bytes + 1;
    }
  }

  std::int64_t rows() const override { return all_.rows; }
  std::int64_t cols() const override { return all_.cols; }
  std::int64_t most_entries() const override { return all_.entries; }
  std::int64_t bytes_asked() const override {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 16;
    return all_.rows > kMost ? std::numeric_limits<std::int64_t>::max() : 16 * all_.rows;
  }
  const InputFile& file() const override { return first_; }
  std::int64_t file_bytes() const override { return all_.bytes; }
  bool is_divisible() const override { return true; }
  bool needs_validation() const override { return true; }
  void require_promised(std::int64_t) const override {}

  /// Offsets of faults count the bytes of all files before.
  void fail(const TextFault& fault) override {
    const auto at = std::upper_bound(begins_.begin(), begins_.end(), fault.offset) - begins_.begin() - 1;
    const Part& part = all_.parts[static_cast<std::size_t>(at)];
    TextFault in_file = fault;
    in_file.offset -= begins_[static_cast<std::size_t>(at)];
    if (part.binary) throw Error(ErrorKind::input, fmt::format("{}: {}", part.path.string(), fault.what), fault.setting);
    fail_at(*TextSource::open(part.path, limits_), in_file);
  }

  /// hypre sets the entries of a file's own rows, so that the last one counts, and adds those of other rows. A program that
  /// adds up finite elements means the sum in both cases.
  void check_duplicates(const HostCsr& part, std::int64_t first_row) const override {
    if (options_.choices.sum_duplicates) return;
    const std::vector<Place> twice = duplicates_in(part, first_row);
    if (twice.empty()) return;
    std::vector<int> set(twice.size());
    for (const Part& file : all_.parts) {
      const auto use = [&](std::span<const MatrixEntry> entries) {
        for (const MatrixEntry& entry : entries) {
          const std::int64_t row = entry.row + all_.first_row;
          const auto at = std::lower_bound(twice.begin(), twice.end(), Place{entry.row, entry.col});
          if (row < file.first_row || row >= file.end_row || at == twice.end() || *at != Place{entry.row, entry.col})
            continue;
          std::atomic_ref<int>(set[static_cast<std::size_t>(at - twice.begin())]).fetch_add(1, std::memory_order_relaxed);
        }
      };
      if (file.binary) read_binary(file, 0, false, use, [](std::int64_t) {});
      else read_text(file, 0, false, use, [](std::int64_t) {});
    }
    for (std::size_t i = 0; i < twice.size(); ++i)
      if (set[i] > 1)
        throw Error(ErrorKind::input,
                    fmt::format("{}: the entry in row {}, column {} comes twice. hypre would keep the last value, and a "
                                "program that adds up finite elements means the sum: have duplicates summed, or write each "
                                "entry once",
                                all_.name, all_.first_row + twice[i].first, all_.first_col + twice[i].second),
                    "sum_duplicates");
  }

  std::int64_t count(const FileShare& share, const UseCounts& use, const Progress& after_batch) override {
    std::atomic<std::int64_t> stored{0};
    pass(share, "count entries", false, after_batch, [&](std::span<const MatrixEntry> entries) {
      std::vector<RowCount> counts;
      for (const MatrixEntry& entry : entries) {
        if (!counts.empty() && counts.back().row == entry.row) ++counts.back().count;
        else counts.push_back({entry.row, 1});
      }
      use(counts);
      stored.fetch_add(std::ssize(entries), std::memory_order_relaxed);
    });
    return stored;
  }

  void read(const FileShare& share, const UseEntries& use, const Progress& after_batch) override {
    pass(share, "read entries", true, after_batch, use);
  }

 private:
  /// Calls use() with the entries of the files of the share.
  void pass(const FileShare& share, std::string_view phase, bool with_values, const Progress& after_batch,
            const UseEntries& use) {
    const auto files = static_cast<std::int64_t>(all_.parts.size());
    const auto first = static_cast<std::size_t>(files * share.index / share.count),
               end = static_cast<std::size_t>(files * (share.index + 1) / share.count);
    if (first == end) return;
    const std::int64_t all = begins_[end - 1] + all_.parts[end - 1].bytes - begins_[first];
    for (std::size_t i = first; i < end; ++i) {
      const Part& part = all_.parts[i];
      const auto done = [&](std::int64_t consumed) {
        report(after_batch, phase, begins_[i] + std::min(consumed, part.bytes) - begins_[first], all);
      };
      if (part.binary) read_binary(part, begins_[i], with_values, use, done);
      else read_text(part, begins_[i], with_values, use, done);
    }
  }

  void read_text(const Part& part, std::int64_t begins, bool with_values, const UseEntries& use,
                 const std::function<void(std::int64_t)>& done) const {
    const auto source = TextSource::open(part.path, limits_);
    if (source->file().size() != part.bytes) source->file().require_unchanged(), fail_changed(part);
    try {
      for_each_piece(
          *source, TextRange{part.body, part.body}, limits_,
          [&](std::string_view piece) {
            std::vector<MatrixEntry> entries;
            for (const char *line = piece.data(), *end = line + piece.size(); line < end;
                 line = static_cast<const char*>(std::memchr(line, '\n', static_cast<std::size_t>(end - line))) + 1)
              if (*matrix_market::skip_blanks(line) != '\n') entries.push_back(parse(line, with_values));
            use(entries);
          },
          done);
    } catch (TextFault& fault) {
      fault.offset += begins;
      throw;
    }
    source->file().require_unchanged();
  }

  using Place = std::pair<std::int64_t, std::int64_t>;  ///< row and column, from 0

  /// In order.
  static std::vector<Place> duplicates_in(const HostCsr& part, std::int64_t first_row) {
    std::vector<Place> found;
    std::mutex mutex;
    parallel_ranges(part.rows, 1 << 10, [&](std::int64_t begin, std::int64_t end) {
      std::vector<std::int64_t> columns;
      for (std::int64_t row = begin; row < end; ++row) {
        const auto at = static_cast<std::size_t>(row);
        columns.assign(part.col_idx.begin() + part.row_ptr[at], part.col_idx.begin() + part.row_ptr[at + 1]);
        std::sort(columns.begin(), columns.end());
        for (auto twice = columns.begin(); (twice = std::adjacent_find(twice, columns.end())) != columns.end();
             twice = std::upper_bound(twice, columns.end(), *twice)) {
          const std::scoped_lock lock(mutex);
          found.emplace_back(first_row + row, *twice);
        }
      }
    });
    std::sort(found.begin(), found.end());
    return found;
  }

  MatrixEntry parse(const char* line, bool with_values) const {
    using namespace text_numbers;
    MatrixEntry entry{0, 0, 0};
    const char* p = parse_whole(line, "row", all_.first_row, all_.first_row + all_.rows - 1, entry.row);
    p = parse_whole(p, "column", all_.first_col, all_.first_col + all_.cols - 1, entry.col);
    entry.row -= all_.first_row, entry.col -= all_.first_col;
    if (with_values) require_line_end(parse_real(p, options_.allow_nonfinite, entry.value));
    return entry;
  }

  [[noreturn]] static void fail_changed(const Part& part) {
    throw Error(ErrorKind::input, fmt::format("{}: the file was changed while it was read; read it again when its writer is "
                                              "done",
                                              part.path.string()));
  }

  void read_binary(const Part& part, std::int64_t begins, bool with_values, const UseEntries& use,
                   const std::function<void(std::int64_t)>& done) const {
    const InputFile file(part.path);
    if (file.size() != part.bytes) fail_changed(part);
    HostVector<std::int64_t> rows, cols;
    HostVector<double> values;
    std::vector<MatrixEntry> entries;
    const std::int64_t columns_at = part.body + part.entries * part.index_bytes,
                       values_at = columns_at + part.entries * part.index_bytes;
    const std::int64_t block = std::clamp<std::int64_t>(limits_.batch_bytes / 24, 1, kBlock);
    for (std::int64_t first = 0; first < part.entries; first += block) {
      const std::int64_t count = std::min(block, part.entries - first);
      read_indices(file, part.body + first * part.index_bytes, part.index_bytes, count, rows);
      read_indices(file, columns_at + first * part.index_bytes, part.index_bytes, count, cols);
      if (with_values) read_values(file, values_at + first * part.value_bytes, part.value_bytes, count, values);
      entries.clear();
      for (std::int64_t k = 0; k < count; ++k) {
        const auto i = static_cast<std::size_t>(k);
        const std::int64_t row = rows[i] - all_.first_row, col = cols[i] - all_.first_col;
        if (row < 0 || row >= all_.rows || col < 0 || col >= all_.cols)
          throw TextFault{begins, fmt::format("entry {} lies at ({}, {}), outside of the matrix; the file is damaged",
                                              first + k, rows[i], cols[i])};
        entries.push_back({row, col, with_values ? values[i] : 0});
      }
      use(entries);
      done(part.body + first + count);
    }
    if (part.entries == 0) done(part.bytes);
    file.require_unchanged();
  }

  static void read_indices(const InputFile& file, std::int64_t offset, int bytes, std::int64_t count,
                           HostVector<std::int64_t>& to) {
    to.resize(static_cast<std::size_t>(count));
    if (bytes == 8) return file.read(to.data(), offset, 8 * count);
    HostVector<std::int32_t> narrow(static_cast<std::size_t>(count));
    file.read(narrow.data(), offset, 4 * count);
    std::copy(narrow.begin(), narrow.end(), to.begin());
  }

  static void read_values(const InputFile& file, std::int64_t offset, int bytes, std::int64_t count,
                          HostVector<double>& to) {
    to.resize(static_cast<std::size_t>(count));
    if (bytes == 8) return file.read(to.data(), offset, 8 * count);
    HostVector<float> narrow(static_cast<std::size_t>(count));
    file.read(narrow.data(), offset, 4 * count);
    std::copy(narrow.begin(), narrow.end(), to.begin());
  }

  ReadOptions options_;
  ReadLimits limits_;
  hypre::Parts all_;
  InputFile first_;
  std::vector<std::int64_t> begins_;  ///< of each file, in all bytes
};

}  // namespace

bool accepts_hypre(const std::filesystem::path& path) { return hypre::has_hypre_name(path); }

std::unique_ptr<EntryReader> open_hypre_entries(const std::filesystem::path& path, const ReadOptions& options,
                                                const ReadLimits& limits) {
  return std::make_unique<HypreEntries>(path, options, limits);
}

}  // namespace shardmat
