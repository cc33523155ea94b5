// A .mat file of version 7.3, which is HDF5, with one sparse matrix, /A: readers/matlab_hdf5.h describes it.
#include <string>

#include "partition/hdf5/writer.h"
#include "partition/readers/matlab_hdf5.h"
#include "partition/writers/columns.h"
#include "partition/writers/writer_list.h"

namespace shardmat {
namespace {

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
