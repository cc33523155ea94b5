#ifdef SHARDMAT_HAVE_LIBZIP

#include "partition/readers/npz_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/base/shortened.h"
#include "partition/readers/complex_values.h"

namespace shardmat {
namespace {

std::array<std::int64_t, 2> read_shape(const NpzArchive& archive) {
  NpzMember member(archive, "shape");
  std::array<std::int64_t, 2> shape{};
  if (member.count() != 2) member.fail(fmt::format("the matrix has {} dimensions; it must have two", member.count()));
  member.next(shape.data(), 2);
  if (shape[0] < 0 || shape[1] < 0) member.fail(fmt::format("the shape {} × {} is negative", shape[0], shape[1]));
  return shape;
}

void read_diagonals(const NpzArchive& archive, NpzMatrix& matrix) {
  NpzMember offsets(archive, "offsets");
  const NpzMember data(archive, "data");
  constexpr std::int64_t kMostDiagonals = 1 << 24;
  const std::int64_t count = offsets.count();
  if (data.shape().size() != 2 || data.shape()[0] != count || offsets.shape().size() != 1)
    data.fail(fmt::format("it must have a row for each of the {} offsets; write the file again", count));
  if (count > kMostDiagonals) offsets.fail(fmt::format("it has {} diagonals; write the matrix as CSR", count));
  matrix.stored = data.count();
  matrix.diagonal_length = data.shape()[1];
  matrix.offsets.resize(static_cast<std::size_t>(count));
  offsets.next(matrix.offsets.data(), count);
  for (const std::int64_t offset : matrix.offsets)
    if (offset > -matrix.rows && offset < matrix.cols) matrix.nnz += matrix.end_of(offset) - matrix.first_of(offset);
  std::vector<std::int64_t> sorted = matrix.offsets;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    offsets.fail(fmt::format("the diagonal {} comes twice; write the file again", *twice));
}

void read_blocks(const NpzArchive& archive, NpzMatrix& matrix) {
  const NpzMember data(archive, "data");
  const auto& shape = data.shape();
  if (shape.size() != 3 || shape[1] < 1 || shape[2] < 1 || matrix.rows % shape[1] != 0 || matrix.cols % shape[2] != 0)
    data.fail(fmt::format("it must have blocks whose sizes divide {} × {}; write the file again", matrix.rows, matrix.cols));
  if (const NpzMember indices(archive, "indices"); indices.count() != shape[0])
    indices.fail(
        fmt::format("it has {} elements but data.npy has {} blocks; write the file again", indices.count(), shape[0]));
  matrix.block_rows = shape[1], matrix.block_cols = shape[2];
  matrix.nnz = matrix.stored = data.count();
}

}  // namespace

HostVector<double> read_stored(const NpzArchive& archive, const NpzMatrix& matrix) {
  NpzMember data(archive, "data");
  data.choose(matrix.part);
  HostVector<double> numbers(static_cast<std::size_t>(matrix.stored));
  data.next(numbers.data(), matrix.stored);
  if (!data.fortran_order()) return numbers;
  const std::vector<std::int64_t>& shape = data.shape();
  HostVector<double> in_order(numbers.size());
  const std::int64_t depth = shape.size() == 3 ? shape[2] : 1;
  std::size_t from = 0;
  for (std::int64_t k = 0; k < depth; ++k)
    for (std::int64_t j = 0; j < shape[1]; ++j)
      for (std::int64_t i = 0; i < shape[0]; ++i)
        in_order[static_cast<std::size_t>((i * shape[1] + j) * depth + k)] = numbers[from++];
  return in_order;
}

HostVector<std::int64_t> read_pointers(const NpzArchive& archive, std::int64_t lines, std::int64_t nnz) {
  NpzMember member(archive, "indptr");
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

NpzMatrix NpzMatrix::of(const NpzArchive& archive, ComplexPart part) {
  NpzMatrix matrix;
  matrix.part = part;
  matrix.format = NpzMember(archive, "format").text();
  const std::string& format = matrix.format;
  if (format != "csr" && format != "csc" && format != "coo" && format != "dia" && format != "bsr")
    archive.fail(fmt::format("the SciPy format {} is not supported; write it with scipy.sparse.save_npz(name, a.tocsr())",
                             shortened(format)));
  const auto shape = read_shape(archive);
  matrix.rows = shape[0];
  matrix.cols = shape[1];
  const NpzMember data(archive, "data");
  if (data.complex() && part == ComplexPart::none) archive.fail(complex_matrix_refused(archive.path().string()));
  if (!data.complex() && part != ComplexPart::none) archive.fail(kNotComplex);
  if (format == "dia" || format == "bsr") {
    format == "dia" ? read_diagonals(archive, matrix) : read_blocks(archive, matrix);
    return matrix;
  }
  matrix.nnz = data.count();
  for (const char* name : {format == "coo" ? "row" : "indices", format == "coo" ? "col" : "indices"})
    if (const NpzMember member(archive, name); member.count() != matrix.nnz)
      member.fail(fmt::format("it has {} elements but data.npy has {}; write the file again", member.count(), matrix.nnz));
  return matrix;
}

std::int64_t NpzMatrix::bytes_needed() const {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t columns = format == "csc" ? cols : 0;
  if (rows > kMost / 64 || columns > kMost / 64 || nnz > kMost / 64) return kMost;
  if (stored > kMost / 64) return kMost;
  return 16 * (rows + 1) + 8 * columns + 16 * nnz + 16 * stored;
}

}  // namespace shardmat

#endif
