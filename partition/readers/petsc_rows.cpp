// Rows of a Mat in a PETSc binary file. Every process reads any rows with pread: columns and values of a range of rows lie
// together. Opening reads all row lengths once and keeps where every few thousandth row begins, so the memory of a rank is
// that of its part and of some blocks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "partition/files/big_endian.h"
#include "partition/readers/petsc.h"
#include "partition/readers/petsc_checks.h"
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace {

using petsc::Kind;
using petsc::Object;

constexpr std::int64_t kRowsOfMark = 4096;
constexpr std::int64_t kPieceEntries = 1 << 15;  ///< read and converted by one task: they stay in its core's cache

class PetscRows final : public RowSource {
 public:
  PetscRows(const std::filesystem::path& path, const ReadOptions& options)
      : file_(path),
        name_(options.object.empty() ? path.string() : fmt::format("{}:{}", path.string(), options.object)),
        object_(petsc::find(file_, petsc::scan(file_), options.object, petsc::Wanted::matrix)),
        allow_nonfinite_(options.allow_nonfinite) {
    if (object_.kind == Kind::sparse) mark_rows();
  }

  std::int64_t rows() const override { return object_.rows; }
  std::int64_t cols() const override { return object_.cols; }
  std::string name() const override { return name_; }

  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    require_range(begin, end);
    HostVector<std::int64_t> lengths(static_cast<std::size_t>(end - begin));
    read_lengths(begin, end, lengths.data());
    return lengths;
  }

  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override {
    require_range(begin, end);
    HostCsr part;
    part.rows = end - begin, part.cols = object_.cols;
    part.row_ptr.resize(static_cast<std::size_t>(part.rows) + 1);
    part.row_ptr[0] = 0;
    read_lengths(begin, end, part.row_ptr.data() + 1);
    std::partial_sum(part.row_ptr.begin(), part.row_ptr.end(), part.row_ptr.begin());
    part.col_idx.resize(static_cast<std::size_t>(part.nnz()));
    part.values.resize(static_cast<std::size_t>(part.nnz()));
    HostVector<std::int64_t> lengths(static_cast<std::size_t>(part.rows));
    for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = part.row_ptr[i + 1] - part.row_ptr[i];
    RowTarget target{
        lengths,       {part.row_ptr.data(), lengths.size()}, nullptr, part.col_idx.data(), nullptr, part.values.data(),
        ValueType::f64};
    read_pieces(begin, target, {});
    return part;
  }

  void read_rows_into(std::int64_t begin, const RowTarget& target, const Progress& progress) const override {
    const std::int64_t end = begin + std::ssize(target.lengths);
    require_range(begin, end);
    HostVector<std::int64_t> row_ptr(target.lengths.size() + 1);
    row_ptr[0] = 0;
    read_lengths(begin, end, row_ptr.data() + 1);
    std::partial_sum(row_ptr.begin(), row_ptr.end(), row_ptr.begin());
    require_lengths(row_ptr, 0, begin, target, name_);
    read_pieces(begin, target, progress);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& setting = {}) const {
    throw Error(ErrorKind::input, fmt::format("{}: {}", name_, what), setting);
  }
  [[noreturn]] void fail_damaged(const std::string& what) const {
    fail(what + "; the file is damaged: copy or write it again");
  }

  void require_range(std::int64_t begin, std::int64_t end) const {
    if (begin < 0 || begin > end || end > object_.rows)
      throw Error(ErrorKind::internal,
                  fmt::format("{}: rows [{}, {}) asked of a matrix with {} rows", name_, begin, end, object_.rows));
  }

  void read_lengths(std::int64_t begin, std::int64_t end, std::int64_t* to) const {
    const std::int64_t count = end - begin;
    if (object_.kind == Kind::dense) return static_cast<void>(std::fill_n(to, count, object_.cols));
    file_.read(to, object_.lengths + begin * object_.index_bytes, count * object_.index_bytes);
    from_big_endian(to, object_.index_bytes, count, to);
    for (std::int64_t i = 0; i < count; ++i)
      if (to[i] < 0 || to[i] > object_.cols)
        fail_damaged(fmt::format("row {} has {} nonzeros in a matrix with {} columns", begin + i, to[i], object_.cols));
  }

  /// Where every kRowsOfMark-th row begins among the nonzeros. Checks that all rows together have as many as promised.
  void mark_rows() {
    require_host_memory(8 * (object_.rows / kRowsOfMark + 2), "the places of rows in a PETSc file");
    HostVector<std::int64_t> lengths(static_cast<std::size_t>(std::min(kPieceEntries, object_.rows)));
    std::int64_t begins = 0;
    for (std::int64_t first = 0; first < object_.rows; first += kPieceEntries) {
      const std::int64_t end = std::min(object_.rows, first + kPieceEntries);
      read_lengths(first, end, lengths.data());
      for (std::int64_t row = first; row < end; ++row) {
        if (row % kRowsOfMark == 0) marks_.push_back(begins);
        begins += lengths[static_cast<std::size_t>(row - first)];
        if (begins > object_.nnz) break;
      }
      if (begins > object_.nnz) break;
    }
    if (begins != object_.nnz)
      fail_damaged(fmt::format("its header promises {} nonzeros, and its rows have {}{}", object_.nnz,
                               begins > object_.nnz ? "more than " : "", std::min(begins, object_.nnz)));
  }

  /// Where the row begins among the nonzeros.
  std::int64_t begin_of(std::int64_t row) const {
    if (object_.kind == Kind::dense) return row * object_.cols;
    if (row == object_.rows) return object_.nnz;
    const std::int64_t mark = row / kRowsOfMark, first = mark * kRowsOfMark;
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(row - first));
    read_lengths(first, row, lengths.data());
    return std::reduce(lengths.begin(), lengths.end(), marks_[static_cast<std::size_t>(mark)]);
  }

  /// Rows of a target that one task reads, and where they begin among the nonzeros.
  struct Piece {
    std::int64_t first, end, begins;
  };

  std::vector<Piece> pieces_of(std::int64_t begins, std::span<const std::int64_t> lengths) const {
    std::vector<Piece> pieces;
    const std::int64_t rows = std::ssize(lengths);
    for (std::int64_t first = 0, end = 0; first < rows; first = end) {
      std::int64_t entries = 0;
      do entries += lengths[static_cast<std::size_t>(end++)];
      while (end < rows && end - first < kPieceEntries && entries + lengths[static_cast<std::size_t>(end)] <= kPieceEntries);
      pieces.push_back({first, end, begins});
      begins += entries;
    }
    return pieces;
  }

  void read_pieces(std::int64_t begin, const RowTarget& target, const Progress& progress) const {
    const std::vector<Piece> pieces = pieces_of(begin_of(begin), target.lengths);
    const auto at_once = static_cast<std::int64_t>(64) * std::max(1, thread_count());
    target.visit([&](auto* columns, auto* values) {
      for (std::int64_t done = 0; done < std::ssize(pieces); done += at_once) {
        const std::int64_t count = std::min(at_once, std::ssize(pieces) - done);
        parallel_tasks(count, [&](std::int64_t i) {
          read_piece(pieces[static_cast<std::size_t>(done + i)], begin, target, columns, values);
        });
        report(progress, "loading", done + count, std::ssize(pieces));
      }
    });
    file_.require_unchanged();
  }

  template <class Column, class Value>
  void read_piece(const Piece& piece, std::int64_t begin, const RowTarget& target, Column* columns, Value* values) const {
    const auto lengths =
        target.lengths.subspan(static_cast<std::size_t>(piece.first), static_cast<std::size_t>(piece.end - piece.first));
    const std::int64_t count = std::reduce(lengths.begin(), lengths.end());
    if (read_in_place(piece, lengths, count, target, columns, values)) return;
    thread_local HostVector<std::int64_t> stored_columns;
    thread_local HostVector<double> stored_values;
    if (std::ssize(stored_columns) < count) {
      stored_columns.resize(static_cast<std::size_t>(count));
      stored_values.resize(static_cast<std::size_t>(count));
    }
    file_.read(stored_values.data(), object_.values + 8 * piece.begins, 8 * count);
    reverse_bytes(reinterpret_cast<std::uint64_t*>(stored_values.data()), count);
    if (object_.kind == Kind::sparse) {
      const int bytes = object_.index_bytes;
      file_.read(stored_columns.data(), object_.columns + bytes * piece.begins, bytes * count);
      from_big_endian(stored_columns.data(), bytes, count, stored_columns.data());
    }
    const double limit = least_out_of_range(target.type);
    std::int64_t* from_columns = stored_columns.data();
    double* from_values = stored_values.data();
    for (std::int64_t i = piece.first; i < piece.end; ++i) {
      const std::int64_t length = target.lengths[static_cast<std::size_t>(i)],
                         place = target.places[static_cast<std::size_t>(i)];
      if (object_.kind == Kind::dense) std::iota(from_columns, from_columns + length, std::int64_t{0});
      else tidy_row(begin + i, from_columns, from_values, length);
      check_values(begin + i, from_values, length, limit, target.type, place);
      for (std::int64_t k = 0; k < length; ++k) {
        columns[place + k] = static_cast<Column>(from_columns[k]);
        values[place + k] = static_cast<Value>(from_values[k]);
      }
      from_columns += length, from_values += length;
    }
    constexpr std::int64_t kKept = 4 * kPieceEntries;
    if (std::ssize(stored_columns) > kKept) {  // of a very long row
      stored_columns = HostVector<std::int64_t>();
      stored_values = HostVector<double>();
    }
  }

  /// Reads a piece straight to its place where numbers have the width of the file and the rows follow one another. False if
  /// that is not so, or if something must be sorted or refused: then the piece is read again, row by row.
  template <class Column, class Value>
  bool read_in_place(const Piece& piece, std::span<const std::int64_t> lengths, std::int64_t count, const RowTarget& target,
                     Column* columns, Value* values) const {
    if constexpr (!std::is_same_v<Value, double>) return false;
    else {
      if (object_.kind != Kind::sparse || object_.index_bytes != static_cast<int>(sizeof(Column)) ||
          target.type != ValueType::f64 || count == 0)
        return false;
      const auto places = target.places.subspan(static_cast<std::size_t>(piece.first), lengths.size());
      for (std::size_t i = 1; i < lengths.size(); ++i)
        if (places[i] != places[i - 1] + lengths[i - 1]) return false;
      Column* const to = columns + places.front();
      const auto bytes = static_cast<std::int64_t>(sizeof(Column));
      file_.read(to, object_.columns + bytes * piece.begins, bytes * count);
      reverse_bytes(reinterpret_cast<std::make_unsigned_t<Column>*>(to), count);
      double* const numbers = values + places.front();
      file_.read(numbers, object_.values + 8 * piece.begins, 8 * count);
      reverse_bytes(reinterpret_cast<std::uint64_t*>(numbers), count);
      std::int64_t allowed = 0, at = 0;  // columns may descend where a row begins
      for (const std::int64_t length : lengths) {
        if (at > 0 && at < count && length > 0) allowed += to[at] <= to[at - 1] ? 1 : 0;
        at += length;
      }
      return petsc::descents(to, count) == allowed && petsc::all_within(to, count, object_.cols) &&
             petsc::all_finite(numbers, count);
    }
  }

  /// Sorts a row that is not. Throws Error(input) for columns out of range, and for one that comes twice.
  void tidy_row(std::int64_t row, std::int64_t* columns, double* values, std::int64_t length) const {
    bool sorted = true;
    std::int64_t last = -1;
    for (std::int64_t k = 0; k < length; ++k) {
      sorted &= columns[k] > last;
      last = columns[k];
    }
    if (sorted && last < object_.cols) return;
    for (std::int64_t k = 0; k < length; ++k)
      if (columns[k] < 0 || columns[k] >= object_.cols)
        fail_damaged(fmt::format("row {} has the column {}, which is out of range [0, {})", row, columns[k], object_.cols));
    std::vector<std::pair<std::int64_t, double>> entries(static_cast<std::size_t>(length));
    for (std::int64_t k = 0; k < length; ++k) entries[static_cast<std::size_t>(k)] = {columns[k], values[k]};
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::int64_t k = 0; k < length; ++k) {
      std::tie(columns[k], values[k]) = entries[static_cast<std::size_t>(k)];
      if (k > 0 && columns[k] == columns[k - 1])
        fail(fmt::format("row {} has column {} twice; assemble the matrix before it is written", row, columns[k]));
    }
  }

  void check_values(std::int64_t row, const double* values, std::int64_t length, double limit, ValueType type,
                    std::int64_t place) const {
    bool good = true;
    for (std::int64_t k = 0; k < length; ++k) good &= std::abs(values[k]) < limit;
    if (good) return;
    for (std::int64_t k = 0; k < length; ++k) {
      if (!std::isfinite(values[k]) && !allow_nonfinite_)
        fail(fmt::format("row {} has the value {}, which is not finite; correct it, or accept values that are not finite",
                         row, values[k]),
             "allow_nonfinite");
      if (std::isfinite(values[k]) && std::abs(values[k]) >= limit)
        refuse_out_of_range(type, place + k, values[k], fmt::format("the values of {}", name_));
    }
  }

  InputFile file_;
  std::string name_;
  Object object_;
  bool allow_nonfinite_;
  std::vector<std::int64_t> marks_;  ///< where the rows 0, kRowsOfMark, 2 · kRowsOfMark … begin
};

}  // namespace

std::unique_ptr<RowSource> open_petsc_rows(const std::filesystem::path& path, const ReadOptions& options) {
  return std::make_unique<PetscRows>(path, options);
}

}  // namespace shardmat
