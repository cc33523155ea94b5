// Matrices that MATLAB (save -v7.3), PETSc and Octave (save -hdf5) keep in HDF5: a group with the columns of a sparse
// matrix.
//
//   /NAME        group; attribute MATLAB_sparse: number of rows
//   /NAME/jc     columns + 1 pointers
//   /NAME/ir     row of each nonzero, from 0     (MATLAB leaves ir and data out where there is no nonzero)
//   /NAME/data   its value
// A .mat file has 512 bytes of MATLAB's own before the HDF5 file. Dense arrays are datasets with the attribute MATLAB_class,
// column after column, so that HDF5 sees them transposed. Octave has other names:
//
//   /NAME        group; attribute OCTAVE_NEW_FORMAT
//   /NAME/value  group with the scalar nr, the number of rows, and cidx, ridx and data in place of jc, ir and data; or a
//   dense
//                array as MATLAB's
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "partition/hdf5/file.h"

namespace shardmat::matlab_hdf5 {

/// True if the file begins with HDF5's signature, or has it behind a block of a user. Does not throw.
bool has_signature(const std::filesystem::path& path);

struct Object {
  std::string name;  ///< "/K"
  bool sparse = true;
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::string fault;  ///< why it cannot be read; then there are no sizes
};

/// Sparse matrices, and dense arrays that MATLAB wrote, in all groups. Throws Error(input) if the file cannot be read.
std::vector<Object> objects_of(const std::filesystem::path& path);

/// "sparse matrix, 975 × 975, 33,525 nonzeros".
std::string describe(const Object& object);

/// "K" and "/K" become "/K".
std::string absolute(const std::string& name);

/// The dataset of an array that MATLAB or Octave wrote, column after column, and named `name`; empty for anything else.
std::string array_dataset(const Hdf5File& file, const std::string& name);
/// The bytes that MATLAB wants before the HDF5 file.
std::string user_block();

}  // namespace shardmat::matlab_hdf5
