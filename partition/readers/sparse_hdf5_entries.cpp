// The matrices of sparse_hdf5.h as entries. Rank 0 reads them from the start to the end.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "partition/readers/complex_values.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/reader_list.h"
#include "partition/readers/sparse_hdf5.h"

namespace shardmat {
namespace {

using binsparse::Order;
using binsparse::Structure;
using sparse_hdf5::Object;

constexpr std::int64_t kEntriesAtOnce = 1 << 15;  ///< nonzeros at a time

/// Entries of a file have a major index, which goes first in its order (the row in CSR), and a minor one.
class SparseHdf5Entries final : public EntryReader {
 public:
  SparseHdf5Entries(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits)
      : file_(path), limits_(limits), part_(options.choices.part), object_(sparse_hdf5::find(path, options.object)) {
    if (form().complex && part_ == ComplexPart::none)
      fail(complex_matrix_refused(options.object.empty() ? path.string() : path.string() + ":" + options.object));
    if (!form().complex && part_ != ComplexPart::none) fail(kNotComplex);
    open_datasets();
  }

  std::int64_t rows() const override { return form().rows; }
  std::int64_t cols() const override { return form().cols; }
  std::int64_t most_entries() const override { return form().stored; }
  std::int64_t bytes_asked() const override {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 128;
    return std::max({rows(), cols(), form().stored}) > kMost
               ? std::numeric_limits<std::int64_t>::max()
               : 16 * rows() + 8 * majors_ + 16 * form().stored * (form().structure == Structure::general ? 1 : 2);
  }
  const InputFile& file() const override { return file_; }
  bool is_divisible() const override { return false; }
  bool needs_validation() const override { return true; }
  void require_promised(std::int64_t) const override {}
  void fail(const TextFault& fault) override { throw Error(ErrorKind::input, place() + ": " + fault.what, fault.setting); }

  bool forbids_duplicates() const override { return object_.binsparse; }  // SciPy sums them

  std::int64_t count(const FileShare&, const UseCounts& use, const Progress& after_batch) override {
    std::vector<RowCount> counts;
    in_blocks("count entries", after_batch, [&](const auto& rows, const auto& columns, std::int64_t) {
      counts.clear();
      for (std::size_t k = 0; k < rows.size(); ++k) {
        counts.push_back({rows[k], 1});
        if (is_mirrored(rows[k], columns[k])) counts.push_back({columns[k], 1});
      }
      use(counts);
    });
    return form().stored;
  }

  void read(const FileShare&, const UseEntries& use, const Progress& after_batch) override {
    HostVector<double> values;
    std::vector<MatrixEntry> entries;
    in_blocks("read entries", after_batch, [&](const auto& rows, const auto& columns, std::int64_t first) {
      read_values(first, std::ssize(rows), values);
      entries.clear();
      for (std::size_t k = 0; k < rows.size(); ++k) {
        entries.push_back({rows[k], columns[k], values[k]});
        if (rows[k] == columns[k]) require_diagonal(rows[k], values[k]);
        if (is_mirrored(rows[k], columns[k])) entries.push_back({columns[k], rows[k], mirrored(values[k])});
      }
      use(entries);
    });
    file_.require_unchanged();
  }

 private:
  const binsparse::Descriptor& form() const { return object_.form; }
  std::string place() const {
    return object_.name == "/" ? file_.path().string() : fmt::format("{}: group {}", file_.path().string(), object_.name);
  }
  [[noreturn]] void fail(const std::string& what) const { throw Error(ErrorKind::input, place() + ": " + what); }

  /// A dataset of `size` numbers; of any number for -1.
  static Hdf5Dataset opened(const Hdf5File& file, const std::string& name, std::int64_t size, bool integers) {
    Hdf5Dataset dataset = file.dataset(name);
    const auto wrong = [&](const std::string& what) {
      throw Error(ErrorKind::input, fmt::format("{}: {}; write the file again", dataset.place(), what));
    };
    if (dataset.shape().size() != 1) wrong("it must have one dimension");
    if (size >= 0 && dataset.size() != size) wrong(fmt::format("it has {} numbers and must have {}", dataset.size(), size));
    const Hdf5Type type = dataset.type();
    const bool whole =
        type == Hdf5Type::i32 || type == Hdf5Type::i64 || type == Hdf5Type::u64 || type == Hdf5Type::other_integer;
    if (type == Hdf5Type::other || (integers && !whole))
      wrong(fmt::format("it must hold {} numbers", integers ? "whole" : "real"));
    return dataset;
  }

  void open_datasets() {
    const Hdf5File file = Hdf5File::open(file_.path(), {object_.pointers, object_.major, object_.minor, object_.values});
    const std::int64_t all = form().order == Order::rows ? form().rows : form().cols;
    if (form().doubly || !form().compressed)
      major_ = opened(file, object_.major, form().compressed ? -1 : form().stored, true);
    majors_ = !form().compressed ? 0 : form().doubly ? major_.size() : all;
    if (form().compressed) pointers_of_ = opened(file, object_.pointers, majors_ + 1, true);
    minor_ = opened(file, object_.minor, form().stored, true);
    const std::int64_t numbers = (form().iso ? std::min<std::int64_t>(1, form().stored) : form().stored);
    const std::int64_t stored = numbers * (form().complex ? 2 : 1);
    values_ = opened(file, object_.values, form().iso && stored == 0 ? -1 : stored, false);
  }

  bool is_mirrored(std::int64_t row, std::int64_t col) const { return form().structure != Structure::general && row != col; }

  double mirrored(double value) const {
    const bool negative = form().structure == Structure::skew_symmetric ||
                          (form().structure == Structure::hermitian && part_ == ComplexPart::imaginary);
    return negative ? -value : value;
  }

  void require_diagonal(std::int64_t row, double value) const {
    if (value == 0) return;
    if (form().structure == Structure::skew_symmetric)
      fail(
          fmt::format("it is skew-symmetric and has the value {} on the diagonal of row {} (counted from 0), where it must "
                      "be 0",
                      value, row));
    if (form().structure == Structure::hermitian && part_ == ComplexPart::imaginary)
      fail(
          fmt::format("it is hermitian and has the imaginary part {} on the diagonal of row {} (counted from 0), where it "
                      "must be 0",
                      value, row));
  }

  void read_values(std::int64_t first, std::int64_t count, HostVector<double>& values) const {
    values.resize(static_cast<std::size_t>(count));
    const std::int64_t width = form().complex ? 2 : 1, part = part_ == ComplexPart::imaginary ? 1 : 0;
    HostVector<double> stored(static_cast<std::size_t>(width * (form().iso ? 1 : count)));
    values_.read(form().iso ? 0 : width * first, std::ssize(stored), stored.data());
    for (std::int64_t k = 0; k < count; ++k)
      values[static_cast<std::size_t>(k)] = stored[static_cast<std::size_t>(form().iso ? part : width * k + part)];
  }

  void require_index(const Hdf5Dataset& dataset, std::int64_t index, std::int64_t end, std::int64_t place) const {
    if (index < 0 || index >= end)
      throw Error(ErrorKind::input, fmt::format("{}: entry {} is {}, which is out of range [0, {}); the file is damaged",
                                                dataset.place(), place, index, end));
  }

  /// The pointers, and the rows (or columns) that they belong to if the file has only those that are not empty.
  void read_pointers() {
    if (!form().compressed || !pointers_.empty()) return;
    limits_.require_memory(8 * (majors_ + 1) + (form().doubly ? 8 * majors_ : 0), file_.path());
    if (form().doubly) {
      names_.resize(static_cast<std::size_t>(majors_));
      major_.read(0, majors_, names_.data());
      for (std::int64_t i = 0; i < majors_; ++i)
        require_index(major_, names_[static_cast<std::size_t>(i)], form().order == Order::rows ? rows() : cols(), i);
    }
    HostVector<std::int64_t> pointers(static_cast<std::size_t>(majors_) + 1);
    pointers_of_.read(0, majors_ + 1, pointers.data());
    if (pointers.front() != 0 || pointers.back() != form().stored || !std::is_sorted(pointers.begin(), pointers.end()))
      throw Error(ErrorKind::input, fmt::format("{}: it must ascend from 0 to {}; the file is damaged: write it again",
                                                pointers_of_.place(), form().stored));
    pointers_ = std::move(pointers);
  }

  void require_triangle(std::int64_t row, std::int64_t col) const {
    if (form().structure == Structure::general || (form().lower ? row >= col : row <= col)) return;
    fail(
        fmt::format("it has the structure {} and an entry in row {}, column {} (counted from 0), which lies in the other "
                    "triangle; write one triangle, or leave out the structure",
                    form().word, row, col));
  }

  /// Calls use(rows, columns, first) for blocks of entries; `first` is the number of the first one.
  template <class Use>
  void in_blocks(std::string_view phase, const Progress& after_batch, Use&& use) {
    read_pointers();
    const std::int64_t block = std::clamp<std::int64_t>(limits_.batch_bytes / 24, 1, kEntriesAtOnce);
    HostVector<std::int64_t> major, minor;
    std::size_t at = 0;
    const bool by_rows = form().order == Order::rows;
    for (std::int64_t first = 0; first < form().stored; first += block) {
      const std::int64_t count = std::min(block, form().stored - first);
      major.resize(static_cast<std::size_t>(count));
      minor.resize(static_cast<std::size_t>(count));
      minor_.read(first, count, minor.data());
      if (!form().compressed) major_.read(first, count, major.data());
      for (std::int64_t k = 0; k < count; ++k) {
        const auto i = static_cast<std::size_t>(k);
        if (form().compressed) {
          while (pointers_[at + 1] <= first + k) ++at;
          major[i] = form().doubly ? names_[at] : static_cast<std::int64_t>(at);
        } else {
          require_index(major_, major[i], by_rows ? rows() : cols(), first + k);
        }
        require_index(minor_, minor[i], by_rows ? cols() : rows(), first + k);
        require_triangle(by_rows ? major[i] : minor[i], by_rows ? minor[i] : major[i]);
      }
      use(by_rows ? major : minor, by_rows ? minor : major, first);
      report(after_batch, phase, first + count, form().stored);
    }
  }

  InputFile file_;
  ReadLimits limits_;
  ComplexPart part_;
  Object object_;
  std::int64_t majors_ = 0;  ///< pointers, less one
  Hdf5Dataset pointers_of_, major_, minor_, values_;
  HostVector<std::int64_t> pointers_, names_;  ///< from the first pass on; names_: doubly compressed only
};

}  // namespace

std::unique_ptr<EntryReader> open_sparse_hdf5_entries(const std::filesystem::path& path, const ReadOptions& options,
                                                      const ReadLimits& limits) {
  return std::make_unique<SparseHdf5Entries>(path, options, limits);
}

}  // namespace shardmat
