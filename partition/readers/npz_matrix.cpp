#ifdef SHARDMAT_HAVE_LIBZIP

#include "partition/readers/npz_matrix.h"

#include <fmt/format.h>

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

}  // namespace

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
  if (format != "csr" && format != "csc" && format != "coo")
    archive.fail(fmt::format("the SciPy format {} is not supported; write it with scipy.sparse.save_npz(name, a.tocsr())",
                             shortened(format)));
  const auto shape = read_shape(archive);
  matrix.rows = shape[0];
  matrix.cols = shape[1];
  const NpzMember data(archive, "data");
  matrix.nnz = data.count();
  if (data.complex() && part == ComplexPart::none) archive.fail(complex_matrix_refused(archive.path().string()));
  if (!data.complex() && part != ComplexPart::none) archive.fail(kNotComplex);
  for (const char* name : {format == "coo" ? "row" : "indices", format == "coo" ? "col" : "indices"})
    if (const NpzMember member(archive, name); member.count() != matrix.nnz)
      member.fail(fmt::format("it has {} elements but data.npy has {}; write the file again", member.count(), matrix.nnz));
  return matrix;
}

std::int64_t NpzMatrix::bytes_needed() const {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t columns = format == "csc" ? cols : 0;
  if (rows > kMost / 64 || columns > kMost / 64 || nnz > kMost / 64) return kMost;
  return 16 * (rows + 1) + 8 * columns + 16 * nnz;
}

}  // namespace shardmat

#endif
