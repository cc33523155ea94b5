// Sparse matrices in MATLAB's files of versions 5 to 7 as entries. Rank 0 reads them from the start to the end, and keeps
// the rows of the nonzeros, which come before the values.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/base/error.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/matlab5.h"
#include "partition/readers/matlab_hdf5.h"
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMostAtOnce = 1 << 15;  ///< nonzeros at a time

class Matlab5Entries final : public EntryReader {
 public:
  Matlab5Entries(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits)
      : limits_(limits),
        file_(path),
        variable_(matlab5::find_sparse(file_, options.object, options.choices.part)),
        imaginary_(options.choices.part == ComplexPart::imaginary) {
    constexpr std::int64_t kBestCompression = 1032;  // of zlib
    most_ = variable_.bytes * (variable_.compressed ? kBestCompression : 1);
    if (variable_.cols > most_) fail(fmt::format("it has {} columns, more than there is room for", variable_.cols));
    most_ = std::min(most_, variable_.most_nonzeros);
  }

  std::int64_t rows() const override { return variable_.rows; }
  std::int64_t cols() const override { return variable_.cols; }
  std::int64_t most_entries() const override { return most_; }
  std::int64_t bytes_asked() const override {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 64;
    return std::max({variable_.rows, variable_.cols, most_}) > kMost ? std::numeric_limits<std::int64_t>::max()
                                                                     : 16 * variable_.rows + 8 * variable_.cols + 8 * most_;
  }
  const InputFile& file() const override { return file_; }
  bool is_divisible() const override { return false; }
  bool needs_validation() const override { return true; }
  void require_promised(std::int64_t) const override {}
  void fail(const TextFault& fault) override { fail(fault.what); }

  std::int64_t count(const FileShare&, const UseCounts& use, const Progress& after_batch) override {
    matlab5::Contents contents(file_, variable_);
    read_structure(contents);
    std::vector<RowCount> counts;
    in_blocks("count entries", after_batch, [&](std::int64_t first, std::int64_t end) {
      counts.clear();
      for (std::int64_t k = first; k < end; ++k) counts.push_back({row_of_[static_cast<std::size_t>(k)], 1});
      use(counts);
    });
    return nnz();
  }

  void read(const FileShare&, const UseEntries& use, const Progress& after_batch) override {
    matlab5::Contents contents(file_, variable_);
    read_structure(contents);
    if (imaginary_) contents.begin();  // passes over the real parts
    if (const std::int64_t found = variable_.logical ? contents.begin_logical(room_) : contents.begin(); found < nnz())
      fail(fmt::format("it has {} values for {} nonzeros; the file is damaged, write it again", found, nnz()));
    std::vector<MatrixEntry> entries;
    HostVector<double> values(static_cast<std::size_t>(std::min(kMostAtOnce, nnz())));
    std::int64_t col = 0;
    in_blocks("read entries", after_batch, [&](std::int64_t first, std::int64_t end) {
      contents.next(values.data(), end - first);
      entries.clear();
      for (std::int64_t k = first; k < end; ++k) {
        while (pointers_[static_cast<std::size_t>(col) + 1] <= k) ++col;
        entries.push_back({row_of_[static_cast<std::size_t>(k)], col, values[static_cast<std::size_t>(k - first)]});
      }
      use(entries);
    });
    contents.finish();
    file_.require_unchanged();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::input, fmt::format("{}: variable {}: {}", file_.path().string(), variable_.name, what));
  }
  std::int64_t nnz() const { return std::ssize(row_of_); }

  /// Rows and pointers; the file may have room for more nonzeros than there are.
  void read_structure(matlab5::Contents& contents) {
    const std::int64_t room = room_ = contents.begin();
    limits_.require_budget(8 * room, file_);
    row_of_.resize(static_cast<std::size_t>(room));
    contents.next(row_of_.data(), room);
    if (const std::int64_t found = contents.begin(); found != variable_.cols + 1)
      fail(fmt::format("it has {} pointers for {} columns; the file is damaged, write it again", found, variable_.cols));
    limits_.require_budget(8 * (variable_.cols + 1), file_);
    pointers_.resize(static_cast<std::size_t>(variable_.cols) + 1);
    contents.next(pointers_.data(), variable_.cols + 1);
    if (pointers_.front() != 0 || pointers_.back() > room || !std::is_sorted(pointers_.begin(), pointers_.end()))
      fail(fmt::format("its pointers must ascend from 0 to at most {}; the file is damaged, write it again", room));
    row_of_.resize(static_cast<std::size_t>(pointers_.back()));
    if (nnz() > most_) fail(fmt::format("it has {} nonzeros and room for {}; the file is damaged", nnz(), most_));
    for (const std::int64_t row : row_of_)
      if (row < 0 || row >= variable_.rows)
        fail(fmt::format("it has the row {}, which is out of range [0, {}); the file is damaged", row, variable_.rows));
  }

  template <class Use>
  void in_blocks(std::string_view phase, const Progress& after_batch, Use&& use) const {
    const std::int64_t block = std::clamp<std::int64_t>(limits_.batch_bytes / 24, 1, kMostAtOnce);
    for (std::int64_t first = 0; first < nnz(); first += block) {
      const std::int64_t end = std::min(nnz(), first + block);
      use(first, end);
      report(after_batch, phase, end, nnz());
    }
  }

  ReadLimits limits_;
  InputFile file_;
  matlab5::Variable variable_;
  bool imaginary_ = false;
  std::int64_t most_ = 0;
  HostVector<std::int64_t> row_of_, pointers_;
  std::int64_t room_ = 0;  ///< for nonzeros
};

}  // namespace

bool accepts_matlab5(const std::filesystem::path& path) {
  return matlab5::is_matlab5_file(path) || (path.extension() == ".mat" && !matlab_hdf5::has_signature(path));
}

std::unique_ptr<EntryReader> open_matlab5_entries(const std::filesystem::path& path, const ReadOptions& options,
                                                  const ReadLimits& limits) {
  return std::make_unique<Matlab5Entries>(path, options, limits);
}

std::vector<FileObject> list_matlab5(const std::filesystem::path& path) {
  std::vector<FileObject> list;
  for (const matlab5::Variable& variable : matlab5::variables_of(InputFile(path)))
    list.push_back({variable.name, matlab5::describe(variable), variable.sparse()});
  return list;
}

}  // namespace shardmat
