// SciPy's save_npz files: a zip archive with one .npy array a member. Members are streamed and converted in
// blocks; CSC and COO are read twice, to count and to place, so that only the CSR matrix is ever in memory.
#include <fmt/format.h>

#include "kernels/base/error.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/reader_list.h"

namespace shardmat {

bool accepts_npz(const std::filesystem::path& path) { return path.extension() == ".npz"; }

HostCsr read_npz(const std::filesystem::path& path, const ReadOptions& options) { return read_npz(path, options, {}); }

}  // namespace shardmat

#ifndef SHARDMAT_HAVE_LIBZIP

namespace shardmat {
namespace {

[[noreturn]] void fail_unreadable(const std::filesystem::path& path) {
  throw Error(ErrorKind::input,
              fmt::format("{}: this build cannot read .npz files because libzip was not found; install libzip-dev and build "
                          "again, or write the matrix with scipy.io.mmwrite",
                          path.string()));
}

}  // namespace

HostCsr read_npz(const std::filesystem::path& path, const ReadOptions&, const ReadLimits&) { fail_unreadable(path); }

std::unique_ptr<EntryReader> open_npz_entries(const std::filesystem::path& path, const ReadOptions&, const ReadLimits&) {
  fail_unreadable(path);
}

}  // namespace shardmat

#else

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "partition/readers/npz_matrix.h"

namespace shardmat {
namespace {

void read_csr(const NpzArchive& archive, const NpzMatrix& stored, HostCsr& matrix) {
  const std::int64_t nnz = stored.nnz;
  matrix.row_ptr = read_pointers(archive, matrix.rows, nnz);
  matrix.col_idx.resize(static_cast<std::size_t>(nnz));
  matrix.values.resize(static_cast<std::size_t>(nnz));
  NpzMember(archive, "indices").next(matrix.col_idx.data(), nnz);
  NpzMember data(archive, "data");
  data.choose(stored.part);
  data.next(matrix.values.data(), nnz);
}

void read_entries(const NpzArchive& archive, const NpzMatrix& stored, HostCsr& matrix) {
  const NpzEntries entries(archive, stored);
  const auto rows = static_cast<std::size_t>(matrix.rows);
  matrix.row_ptr.assign(rows + 1, 0);
  entries.for_each(false,
                   [&](std::int64_t row, std::int64_t, double) { ++matrix.row_ptr[static_cast<std::size_t>(row) + 1]; });
  for (std::size_t i = 0; i < rows; ++i) matrix.row_ptr[i + 1] += matrix.row_ptr[i];
  matrix.col_idx.resize(static_cast<std::size_t>(stored.nnz));
  matrix.values.resize(static_cast<std::size_t>(stored.nnz));
  entries.for_each(true, [&](std::int64_t row, std::int64_t col, double value) {
    const auto at = static_cast<std::size_t>(matrix.row_ptr[static_cast<std::size_t>(row)]++);
    matrix.col_idx[at] = col;
    matrix.values[at] = value;
  });
  std::copy_backward(matrix.row_ptr.begin(), matrix.row_ptr.end() - 1, matrix.row_ptr.end());
  matrix.row_ptr.front() = 0;
}

/// One share: a zip archive is read from its start to its end.
class NpzEntryReader final : public EntryReader {
 public:
  NpzEntryReader(const std::filesystem::path& path, const ReadLimits& limits)
      : limits_(limits), archive_(path), matrix_(NpzMatrix::of(archive_)) {}

  std::int64_t rows() const override { return matrix_.rows; }
  std::int64_t cols() const override { return matrix_.cols; }
  std::int64_t most_entries() const override { return matrix_.nnz; }
  std::int64_t bytes_asked() const override { return matrix_.bytes_needed(); }
  const InputFile& file() const override { return archive_.file(); }
  bool is_divisible() const override { return false; }
  bool needs_validation() const override { return true; }
  void require_promised(std::int64_t) const override {}
  void fail(const TextFault& fault) override { archive_.fail(fault.what, fault.setting); }

  std::int64_t count(const FileShare&, const UseCounts& use, const Progress& after_batch) override {
    std::vector<RowCount> counts;
    in_batches(
        false, "count entries", after_batch,
        [&](std::int64_t row, std::int64_t, double) {
          if (!counts.empty() && counts.back().row == row) ++counts.back().count;
          else counts.push_back({row, 1});
        },
        [&] {
          use(counts);
          counts.clear();
        });
    return matrix_.nnz;
  }

  void read(const FileShare&, const UseEntries& use, const Progress& after_batch) override {
    std::vector<MatrixEntry> entries;
    in_batches(
        true, "read entries", after_batch,
        [&](std::int64_t row, std::int64_t col, double value) {
          entries.push_back({row, col, value});
        },
        [&] {
          use(entries);
          entries.clear();
        });
    archive_.file().require_unchanged();
  }

 private:
  /// Calls visit(row, col, value) for each entry, and hand_over() before each after_batch().
  template <class Visit, class HandOver>
  void in_batches(bool with_values, std::string_view phase, const Progress& after_batch, Visit&& visit,
                  HandOver&& hand_over) {
    if (!entries_) {
      limits_.require_memory(8 * (matrix_.format == "coo"                              ? 0
                                  : matrix_.format == "dia" || matrix_.format == "bsr" ? matrix_.rows + 2 * matrix_.stored
                                  : matrix_.format == "csr"                            ? matrix_.rows
                                                                                       : matrix_.cols),
                             archive_.path());
      entries_ = std::make_unique<NpzEntries>(archive_, matrix_);
    }
    const std::int64_t batch = std::max<std::int64_t>(1, limits_.batch_bytes / kBytesAnEntry);
    std::int64_t done = 0;
    entries_->for_each(with_values, [&](std::int64_t row, std::int64_t col, double value) {
      visit(row, col, value);
      if (++done % batch != 0) return;
      hand_over();
      report(after_batch, phase, done, matrix_.nnz);
    });
    if (done % batch == 0) return;
    hand_over();
    report(after_batch, phase, done, matrix_.nnz);
  }

  static constexpr std::int64_t kBytesAnEntry = 16;
  ReadLimits limits_;
  NpzArchive archive_;
  NpzMatrix matrix_;
  std::unique_ptr<NpzEntries> entries_;  ///< from the first pass on
};

}  // namespace

HostCsr read_npz(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits) {
  const NpzArchive archive(path);
  const std::int64_t size = archive.file().size();
  const NpzMatrix stored = NpzMatrix::of(archive, options.choices.part);
  HostCsr matrix;
  matrix.rows = stored.rows;
  matrix.cols = stored.cols;
  limits.require_budget(stored.bytes_needed(), archive.file());
  report(options.progress, "read entries", 0, size);
  if (stored.format == "csr") read_csr(archive, stored, matrix);
  else read_entries(archive, stored, matrix);
  archive.file().require_unchanged();
  report(options.progress, "read entries", size, size);
  sort_rows_and_sum_duplicates(matrix);
  validate(matrix.view(), {options.allow_nonfinite, 0, path.string()});
  return matrix;
}

std::unique_ptr<EntryReader> open_npz_entries(const std::filesystem::path& path, const ReadOptions&,
                                              const ReadLimits& limits) {
  return std::make_unique<NpzEntryReader>(path, limits);
}

}  // namespace shardmat

#endif
