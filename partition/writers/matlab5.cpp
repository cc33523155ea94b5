// A .mat file of version 5 with one sparse matrix, A: readers/matlab5.h describes it. SciPy, Octave and every MATLAB read
// it, and only MATLAB reads sparse matrices of version 7.3. It is not compressed, as by save -v6.
#include <fmt/format.h>

#include <limits>
#include <string>
#include <vector>

#include "partition/output_file.h"
#include "partition/writers/columns.h"
#include "partition/writers/writer_list.h"

namespace shardmat {
namespace {

constexpr std::uint32_t kInt8 = 1, kInt32 = 5, kUint32 = 6, kDouble = 9, kMatrix = 14, kSparseClass = 5;
/// Octave and older versions of MATLAB take sizes for numbers of 31 bits.
constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

std::int64_t padded(std::int64_t bytes) { return (bytes + 7) / 8 * 8; }
/// Bytes of an element of a variable, with its tag.
std::int64_t element_bytes(std::int64_t bytes) { return 8 + padded(bytes); }

std::int64_t variable_bytes(std::int64_t cols, std::int64_t nnz) {
  const std::int64_t head = element_bytes(8) + element_bytes(8) + element_bytes(1);
  return head + element_bytes(4 * nnz) + element_bytes(4 * (cols + 1)) + element_bytes(8 * nnz);
}

void append_words(OutputFile& out, std::initializer_list<std::int64_t> numbers) {
  for (const std::int64_t number : numbers) {
    const auto word = static_cast<std::uint32_t>(number);
    out.append({reinterpret_cast<const char*>(&word), sizeof word});
  }
}

/// An element of indices.
void append_indices(OutputFile& out, const HostVector<std::int64_t>& numbers) {
  constexpr std::int64_t kBlock = 1 << 16;
  const std::int64_t count = std::ssize(numbers), bytes = 4 * count;
  append_words(out, {kInt32, bytes});
  std::vector<std::int32_t> block;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    block.assign(numbers.begin() + begin, numbers.begin() + std::min(count, begin + kBlock));
    out.append({reinterpret_cast<const char*>(block.data()), 4 * block.size()});
  }
  out.append(std::string(static_cast<std::size_t>(padded(bytes) - bytes), '\0'));
}

}  // namespace

bool fits_matlab5(std::int64_t rows, std::int64_t cols, std::int64_t nnz) {
  return rows <= kMost && cols < kMost && nnz <= kMost / 16 && variable_bytes(cols, nnz) <= kMost;
}

void write_matlab5(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                   const Progress& progress) {
  const std::int64_t nnz = row_ptr.back();
  const Columns columns = columns_of(source, nnz, progress);
  OutputFile out(file);
  std::string header = "MATLAB 5.0 MAT-file, written by Shardmat";
  header.resize(116, ' ');
  header.resize(124, '\0');
  out.append(header.append("\x00\x01IM", 4));
  append_words(out, {kMatrix, variable_bytes(source.cols(), nnz)});
  append_words(out, {kUint32, 8, kSparseClass, nnz});
  append_words(out, {kInt32, 8, source.rows(), source.cols()});
  append_words(out, {kInt8, 1, 'A', 0});
  append_indices(out, columns.rows);
  append_indices(out, columns.pointers);
  append_words(out, {kDouble, 8 * nnz});
  out.append({reinterpret_cast<const char*>(columns.values.data()), static_cast<std::size_t>(8 * nnz)});
  out.close();
}

void write_matlab(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                  const Progress& progress) {
  if (fits_matlab5(source.rows(), source.cols(), row_ptr.back())) write_matlab5(file, source, row_ptr, progress);
  else write_matlab_hdf5(file, source, row_ptr, progress);
}

}  // namespace shardmat
