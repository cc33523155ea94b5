// Matrices of Harwell-Boeing and Rutherford-Boeing files (harwell_boeing.h). The file is read from its start to its end, by
// rank 0, which keeps the row indices.
#include "partition/readers/harwell_boeing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "partition/files/compression/compression.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/matrix_market.h"
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace {

using harwell_boeing::FieldCursor;
using harwell_boeing::Header;

std::int64_t whole(std::string_view text, const char* what, std::int64_t least, std::int64_t most, const LineCursor& lines) {
  std::int64_t number = 0;
  const char* const first = text.data() + (text.size() > 1 && text[0] == '+' && text[1] != '-' ? 1 : 0);
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < least || number > most)
    lines.fail(fmt::format("the {} {} is no whole number from {} to {}; the file is damaged, or its formats are wrong", what,
                           matrix_market::quote(text), least, most));
  return number;
}

class HarwellBoeing final : public EntryReader {
 public:
  HarwellBoeing(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits)
      : options_(options), limits_(limits), source_(TextSource::open(path, limits)) {
    lines_.emplace(*source_);
    header_ = harwell_boeing::read_header(*lines_);
    harwell_boeing::require_room(*source_, header_, *lines_);
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
              header_.pattern() ? 1 : harwell_boeing::real(values.next(), header_.values, options_.allow_nonfinite, *lines_);
          if (header_.sign() < 0 && row == col && value != 0)
            lines_->fail(
                fmt::format("the diagonal entry in row {} is {}; in a skew-symmetric matrix it must be 0", row + 1, value));
          entries.push_back({row, col, value});
          if (header_.mirrored() && row != col) entries.push_back({col, row, header_.sign() * value});
        },
        [&] {
          use(entries);
          entries.clear();
        });
    harwell_boeing::require_lines(*lines_, header_.lines_of_matrix() + header_.lines.vectors);
    source_->file().require_unchanged();
  }

 private:
  /// Reads pointers and row indices; the values come next then.
  void read_structure() {
    limits_.require_memory(8 * (header_.cols + 1) + 8 * header_.entries, source_->file().path());
    lines_.emplace(*source_);
    header_ = harwell_boeing::read_header(*lines_);
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
  const std::string suffix = uncompressed_name(path).extension().string();
  return suffix == ".rb" || suffix == ".rua" || suffix == ".rsa" || harwell_boeing::is_matrix_file(path) ||
         harwell_boeing::is_auxiliary_file(path);
}

std::unique_ptr<EntryReader> open_harwell_boeing(const std::filesystem::path& path, const ReadOptions& options,
                                                 const ReadLimits& limits) {
  if (!options.object.empty())
    throw Error(ErrorKind::input,
                fmt::format("{}: it holds one matrix, and objects with names are its vectors; leave out :{}", path.string(),
                            options.object));
  return std::make_unique<HarwellBoeing>(path, options, limits);
}

std::vector<FileObject> list_harwell_boeing(const std::filesystem::path& path) {
  constexpr std::int64_t kMostListed = 20;
  std::vector<FileObject> objects;
  if (!harwell_boeing::is_auxiliary_file(path)) objects.push_back({"", "matrix, harwell-boeing"});
  try {
    const harwell_boeing::VectorList list = harwell_boeing::vectors_of(*TextSource::open(path, {}));
    if (!list.refused.empty()) objects.push_back({"", "vectors that are not read: " + list.refused, false});
    for (const harwell_boeing::Vectors& vectors : list.kinds)
      for (std::int64_t i = 1; list.refused.empty() && i <= std::min(vectors.count, kMostListed); ++i)
        objects.push_back({vectors.count == 1 ? vectors.name : fmt::format("{}{}", vectors.name, i),
                           fmt::format("vector, {} × 1{}", list.rows,
                                       i == kMostListed && vectors.count > i
                                           ? fmt::format(", and so on to {}{}", vectors.name, vectors.count)
                                           : ""),
                           false});
  } catch (const Error& error) {  // the matrix may be good
    objects.push_back({"", fmt::format("vectors that cannot be read: {}", error.what()), false});
  }
  return objects;
}

}  // namespace shardmat
