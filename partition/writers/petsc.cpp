// A PETSc binary file with one sparse Mat: readers/petsc.h describes it. The matrix is streamed once for the columns and
// once for the values.
#include <limits>
#include <string>
#include <vector>

#include "kernels/base/parallel.h"
#include "partition/files/big_endian.h"
#include "partition/files/output_file.h"
#include "partition/readers/petsc.h"
#include "partition/writers/writer_list.h"

namespace shardmat {
namespace {

constexpr std::int64_t kBlock = 1 << 16;  ///< numbers converted at a time by a task

void append_indices(OutputFile& out, std::span<const std::int64_t> numbers, int bytes_each) {
  std::string bytes(numbers.size() * static_cast<std::size_t>(bytes_each), '\0');
  to_big_endian(numbers.data(), bytes_each, std::ssize(numbers), bytes.data());
  out.append(bytes);
}

void append_lengths(OutputFile& out, std::span<const std::int64_t> row_ptr, int bytes_each) {
  const std::int64_t rows = std::ssize(row_ptr) - 1;
  std::vector<std::int64_t> lengths;
  for (std::int64_t first = 0; first < rows; first += kBlock) {
    lengths.clear();
    for (std::int64_t row = first; row < std::min(rows, first + kBlock); ++row)
      lengths.push_back(row_ptr[static_cast<std::size_t>(row) + 1] - row_ptr[static_cast<std::size_t>(row)]);
    append_indices(out, lengths, bytes_each);
  }
}

/// Appends item_bytes for each nonzero; convert(slice, begin, end, to) makes those of the entries [begin, end) of a slice.
template <class Convert>
void append_entries(OutputFile& out, const RowSource& source, std::int64_t nnz, int item_bytes, const char* phase,
                    const Progress& progress, Convert&& convert) {
  std::int64_t written = 0;
  std::string bytes;
  for_each_row_slice(source, 0, source.rows(), [&](std::int64_t, const CsrView& slice) {
    bytes.resize(static_cast<std::size_t>(slice.nnz() * item_bytes));
    parallel_ranges(slice.nnz(), kBlock, [&](std::int64_t begin, std::int64_t end) {
      convert(slice, begin, end, bytes.data() + begin * item_bytes);
    });
    out.append(bytes);
    written += slice.nnz();
    report(progress, phase, written, nnz);
  });
}

}  // namespace

void write_petsc(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                 const Progress& progress) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() - 1;
  const std::int64_t nnz = row_ptr.back();
  const int index_bytes = source.rows() <= kMost && source.cols() <= kMost && nnz <= kMost ? 4 : 8;
  OutputFile out(file);
  const std::int64_t header[] = {petsc::kMat, source.rows(), source.cols(), nnz};
  append_indices(out, header, index_bytes);
  append_lengths(out, row_ptr, index_bytes);
  append_entries(out, source, nnz, index_bytes, "write columns", progress,
                 [&](const CsrView& slice, std::int64_t begin, std::int64_t end, char* to) {
                   std::vector<std::int64_t> columns;
                   for (std::int64_t k = begin; k < end; ++k) columns.push_back(slice.col_idx[static_cast<std::size_t>(k)]);
                   to_big_endian(columns.data(), index_bytes, end - begin, to);
                 });
  append_entries(out, source, nnz, 8, "write values", progress,
                 [](const CsrView& slice, std::int64_t begin, std::int64_t end, char* to) {
                   auto* const values = reinterpret_cast<double*>(to);
                   for (std::int64_t k = begin; k < end; ++k) values[k - begin] = slice.values[static_cast<std::size_t>(k)];
                   reverse_bytes(reinterpret_cast<std::uint64_t*>(to), end - begin);
                 });
  out.close();
}

}  // namespace shardmat
