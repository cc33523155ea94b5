// A .mat file of version 7.3 with one sparse matrix, /A: readers/matlab_hdf5.h describes it. The columns are put together in
// memory, because rows come from the source and columns go to the file.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kernels/base/host_vector.h"
#include "kernels/base/memory_limits.h"
#include "partition/hdf5/writer.h"
#include "partition/readers/matlab_hdf5.h"
#include "partition/writers/writer_list.h"

namespace shardmat {
namespace {

struct Columns {
  HostVector<std::int64_t> pointers, rows;
  HostVector<double> values;
};

Columns columns_of(const RowSource& source, std::int64_t nnz, const Progress& progress) {
  require_host_memory(16 * nnz + 8 * source.cols(), "the columns of a .mat file");
  Columns columns;
  columns.pointers.assign(static_cast<std::size_t>(source.cols()) + 1, 0);
  std::int64_t counted = 0;
  for_each_row_slice(source, 0, source.rows(), [&](std::int64_t, const CsrView& slice) {
    for (std::int64_t k = 0; k < slice.nnz(); ++k)
      ++columns.pointers[static_cast<std::size_t>(slice.col_idx[static_cast<std::size_t>(k)]) + 1];
    report(progress, "count columns", counted += slice.nnz(), nnz);
  });
  for (std::size_t j = 1; j < columns.pointers.size(); ++j) columns.pointers[j] += columns.pointers[j - 1];
  columns.rows.resize(static_cast<std::size_t>(nnz));
  columns.values.resize(static_cast<std::size_t>(nnz));
  std::int64_t placed = 0;
  for_each_row_slice(source, 0, source.rows(), [&](std::int64_t first_row, const CsrView& slice) {
    for (std::int64_t i = 0; i < slice.rows; ++i)
      for (std::int64_t k = slice.row_ptr[static_cast<std::size_t>(i)]; k < slice.row_ptr[static_cast<std::size_t>(i) + 1];
           ++k) {
        const auto from = static_cast<std::size_t>(k - slice.row_ptr[0]);
        const auto at = static_cast<std::size_t>(columns.pointers[static_cast<std::size_t>(slice.col_idx[from])]++);
        columns.rows[at] = first_row + i;
        columns.values[at] = slice.values[from];
      }
    report(progress, "sort columns", placed += slice.nnz(), nnz);
  });
  std::copy_backward(columns.pointers.begin(), columns.pointers.end() - 1, columns.pointers.end());
  columns.pointers.front() = 0;
  return columns;
}

void write_indices(Hdf5Writer& out, const std::string& name, const HostVector<std::int64_t>& numbers) {
  auto dataset = out.create_dataset<std::uint64_t>(name, {std::ssize(numbers)});
  dataset.write(0, std::ssize(numbers), reinterpret_cast<const std::uint64_t*>(numbers.data()));
}

}  // namespace

void write_matlab_hdf5(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                       const Progress& progress) {
  const std::int64_t nnz = row_ptr.back();
  const Columns columns = columns_of(source, nnz, progress);
  Hdf5Writer out(file, 16 * nnz + 8 * source.cols(), matlab_hdf5::user_block());
  out.create_group("/A");
  out.write_attribute("/A", "MATLAB_class", std::string("double"));
  out.write_attribute<std::uint64_t>("/A", "MATLAB_sparse", static_cast<std::uint64_t>(source.rows()));
  write_indices(out, "/A/jc", columns.pointers);
  if (nnz > 0) {
    write_indices(out, "/A/ir", columns.rows);
    auto values = out.create_dataset<double>("/A/data", {nnz});
    values.write(0, nnz, columns.values.data());
  }
  out.close();
}

}  // namespace shardmat
