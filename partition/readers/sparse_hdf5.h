// Sparse matrices in HDF5 files of other programs, as entries.
//
//   Binsparse      the root, or groups, with the attribute `binsparse` (hdf5/binsparse.h)
//   AnnData        .h5ad: groups with the attributes encoding-type (csr_matrix, csc_matrix) and shape; data, indices, indptr
//   10x Genomics   groups with data, indices, indptr, shape and barcodes: by columns
//   others         such groups with a dataset or an attribute `shape`, if it tells rows from columns
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "partition/hdf5/binsparse.h"
#include "partition/hdf5/file.h"

namespace shardmat::sparse_hdf5 {

struct Object {
  std::string name;  ///< "/", "/X", "/layers/counts"
  binsparse::Descriptor form;
  bool binsparse = true;
  std::string pointers, major, minor, values;  ///< datasets; major: the indices_0 of Binsparse
  std::string fault;                           ///< why it cannot be read; then nothing else is known
};

/// All matrices in the file. Throws Error(input) if the file cannot be read.
std::vector<Object> objects_of(const std::filesystem::path& path);

/// "sparse matrix, 975 × 975, 33,525 nonzeros stored, CSC, symmetric_lower".
std::string describe(const Object& object);

/// The object named `name`, or the only one if the name is empty. Throws Error(input), which lists them.
Object find(const std::filesystem::path& path, const std::string& name);

}  // namespace shardmat::sparse_hdf5
