// SciPy's save_npz files: a zip archive with one .npy array a member. Members are streamed and converted in
// blocks; CSC and COO are read twice, to count and to place, so that only the CSR matrix is ever in memory.
#include <fmt/format.h>

#include "kernels/base/error.h"
#include "partition/readers/reader_list.h"

namespace shardmat {

bool accepts_npz(const std::filesystem::path& path) { return path.extension() == ".npz"; }

HostCsr read_npz(const std::filesystem::path& path, const ReadOptions& options) { return read_npz(path, options, {}); }

}  // namespace shardmat

#ifndef SHARDMAT_HAVE_LIBZIP

namespace shardmat {

HostCsr read_npz(const std::filesystem::path& path, const ReadOptions&, const ReadLimits&) {
  throw Error(ErrorKind::input,
              fmt::format("{}: this build cannot read .npz files because libzip was not found; install libzip-dev and build "
                          "again, or write the matrix with scipy.io.mmwrite",
                          path.string()));
}

}  // namespace shardmat

#else

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/shortened.h"
#include "partition/readers/npz_archive.h"

namespace shardmat {
namespace {

using Archive = NpzArchive;
using Member = NpzMember;

constexpr std::int64_t kBlock = 1 << 15;  ///< entries visited at a time

HostVector<std::int64_t> read_pointers(const Archive& archive, std::int64_t lines, std::int64_t nnz) {
  Member member(archive, "indptr");
  if (member.count() != lines + 1)
    member.fail(fmt::format("it has {} elements; the shape of the matrix asks for {}", member.count(), lines + 1));
  HostVector<std::int64_t> pointers(static_cast<std::size_t>(lines) + 1);
  member.next(pointers.data(), lines + 1);
  for (std::size_t i = 0; i < static_cast<std::size_t>(lines); ++i)
    if (pointers[i] > pointers[i + 1])
      member.fail(fmt::format("element {} = {} is followed by the smaller {}; it must not decrease", i, pointers[i],
                              pointers[i + 1]));
  if (pointers.front() != 0 || pointers.back() != nnz)
    member.fail(fmt::format("it goes from {} to {}; it must go from 0 to the {} entries of indices.npy", pointers.front(),
                            pointers.back(), nnz));
  return pointers;
}

/// The entries of a CSC or COO archive in file order, as often as asked for.
class Entries {
 public:
  Entries(const Archive& archive, const std::string& format, std::int64_t cols, std::int64_t nnz)
      : archive_(archive), is_csc_(format == "csc"), nnz_(nnz) {
    if (is_csc_) pointers_ = read_pointers(archive, cols, nnz);
  }

  /// Calls visit(row, col, value); value is 0 and col is not checked unless with_values.
  template <class Visit>
  void for_each(bool with_values, std::int64_t rows, Visit&& visit) const {
    Member row_member(archive_, is_csc_ ? "indices" : "row");
    std::unique_ptr<Member> col_member, data_member;
    if (with_values && !is_csc_) col_member = std::make_unique<Member>(archive_, "col");
    if (with_values) data_member = std::make_unique<Member>(archive_, "data");
    std::vector<std::int64_t> row(kBlock), col(kBlock);
    std::vector<double> value(kBlock);
    std::size_t column = 0;
    for (std::int64_t first = 0; first < nnz_; first += kBlock) {
      const std::int64_t count = std::min(kBlock, nnz_ - first);
      row_member.next(row.data(), count);
      if (col_member) col_member->next(col.data(), count);
      if (data_member) data_member->next(value.data(), count);
      for (std::int64_t k = 0; k < count; ++k) {
        const auto i = static_cast<std::size_t>(k);
        if (row[i] < 0 || row[i] >= rows)
          row_member.fail(fmt::format("element {}: row {} is out of range [0, {})", first + k, row[i], rows));
        if (is_csc_) {
          while (pointers_[column + 1] <= first + k) ++column;
          col[i] = static_cast<std::int64_t>(column);
        }
        visit(row[i], col[i], value[i]);
      }
    }
  }

 private:
  const Archive& archive_;
  bool is_csc_;
  std::int64_t nnz_;
  HostVector<std::int64_t> pointers_;
};

void read_csr(const Archive& archive, std::int64_t nnz, HostCsr& matrix) {
  matrix.row_ptr = read_pointers(archive, matrix.rows, nnz);
  matrix.col_idx.resize(static_cast<std::size_t>(nnz));
  matrix.values.resize(static_cast<std::size_t>(nnz));
  Member(archive, "indices").next(matrix.col_idx.data(), nnz);
  Member(archive, "data").next(matrix.values.data(), nnz);
}

void read_entries(const Archive& archive, const std::string& format, std::int64_t nnz, HostCsr& matrix) {
  const Entries entries(archive, format, matrix.cols, nnz);
  const auto rows = static_cast<std::size_t>(matrix.rows);
  matrix.row_ptr.assign(rows + 1, 0);
  entries.for_each(false, matrix.rows,
                   [&](std::int64_t row, std::int64_t, double) { ++matrix.row_ptr[static_cast<std::size_t>(row) + 1]; });
  for (std::size_t i = 0; i < rows; ++i) matrix.row_ptr[i + 1] += matrix.row_ptr[i];
  matrix.col_idx.resize(static_cast<std::size_t>(nnz));
  matrix.values.resize(static_cast<std::size_t>(nnz));
  entries.for_each(true, matrix.rows, [&](std::int64_t row, std::int64_t col, double value) {
    const auto at = static_cast<std::size_t>(matrix.row_ptr[static_cast<std::size_t>(row)]++);
    matrix.col_idx[at] = col;
    matrix.values[at] = value;
  });
  std::copy_backward(matrix.row_ptr.begin(), matrix.row_ptr.end() - 1, matrix.row_ptr.end());
  matrix.row_ptr.front() = 0;
}

std::array<std::int64_t, 2> read_shape(const Archive& archive) {
  Member member(archive, "shape");
  std::array<std::int64_t, 2> shape{};
  if (member.count() != 2) member.fail(fmt::format("the matrix has {} dimensions; it must have two", member.count()));
  member.next(shape.data(), 2);
  if (shape[0] < 0 || shape[1] < 0) member.fail(fmt::format("the shape {} × {} is negative", shape[0], shape[1]));
  return shape;
}

/// Bytes that reading takes with one number more for each row, as sorting does.
std::int64_t bytes_needed(const HostCsr& matrix, const std::string& format, std::int64_t nnz) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t columns = format == "csc" ? matrix.cols : 0;
  if (matrix.rows > kMost / 64 || columns > kMost / 64 || nnz > kMost / 64) return kMost;
  return 16 * (matrix.rows + 1) + 8 * columns + 16 * nnz;
}

}  // namespace

HostCsr read_npz(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits) {
  const Archive archive(path);
  const std::int64_t size = archive.file().size();
  const std::string format = Member(archive, "format").text();
  if (format != "csr" && format != "csc" && format != "coo")
    archive.fail(fmt::format("the SciPy format {} is not supported; write it with scipy.sparse.save_npz(name, a.tocsr())",
                             shortened(format)));
  HostCsr matrix;
  const auto shape = read_shape(archive);
  matrix.rows = shape[0];
  matrix.cols = shape[1];
  const std::int64_t nnz = Member(archive, "data").count();
  for (const char* name : {format == "coo" ? "row" : "indices", format == "coo" ? "col" : "indices"})
    if (const Member member(archive, name); member.count() != nnz)
      member.fail(fmt::format("it has {} elements but data.npy has {}; write the file again", member.count(), nnz));
  limits.require_budget(bytes_needed(matrix, format, nnz), archive.file());
  report(options.progress, "read entries", 0, size);
  if (format == "csr") read_csr(archive, nnz, matrix);
  else read_entries(archive, format, nnz, matrix);
  archive.file().require_unchanged();
  report(options.progress, "read entries", size, size);
  sort_rows_and_sum_duplicates(matrix);
  validate(matrix.view(), {options.allow_nonfinite, 0, path.string()});
  return matrix;
}

}  // namespace shardmat

#endif
