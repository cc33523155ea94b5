// A .mat file of version 5 with one sparse matrix, A: readers/matlab5.h describes it. SciPy, Octave and every MATLAB read
// it, and only MATLAB reads sparse matrices of version 7.3. It is not compressed, as by save -v6.
#include <string>
#include <vector>

#include "partition/files/output_file.h"
#include "partition/writers/columns.h"
#include "partition/writers/matlab5_elements.h"
#include "partition/writers/writer_list.h"

namespace shardmat {
namespace {

using namespace matlab5;

std::int64_t variable_bytes(std::int64_t cols, std::int64_t nnz) {
  return head_bytes("A") + element_bytes(4 * nnz) + element_bytes(4 * (cols + 1)) + element_bytes(8 * nnz);
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
  begin_file(out, variable_bytes(source.cols(), nnz), kSparseClass, nnz, source.rows(), source.cols(), "A");
  append_indices(out, columns.rows);
  append_indices(out, columns.pointers);
  append_element(out, kDouble, {reinterpret_cast<const char*>(columns.values.data()), static_cast<std::size_t>(8 * nnz)});
  out.close();
}

void write_matlab(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                  const Progress& progress) {
  if (fits_matlab5(source.rows(), source.cols(), row_ptr.back())) write_matlab5(file, source, row_ptr, progress);
  else write_matlab_hdf5(file, source, row_ptr, progress);
}

}  // namespace shardmat
