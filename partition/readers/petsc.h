// PETSc's binary files: Mat and Vec objects one after another, numbers with their highest byte first. A build of PETSc with
// 64-bit indices writes other files; the first object tells.
//
//   sparse Mat   1211216, rows, columns, nonzeros, length of each row, columns (from 0), values
//   dense Mat    1211216, rows, columns, -1, values row by row
//   Vec          1211214, entries, values
//   IS           1211218, entries, indices
// Values are f64. Where a build with 32-bit indices has more nonzeros than it can count, it writes 2147483647 for their
// number, and the row lengths tell. `FILE.info` may have the line "-matload_block_size 3".
// (PETSc sources: src/mat/impls/aij/seq/aij.c, src/mat/impls/dense/seq/dense.c, src/vec/vec/utils/vecio.c)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "partition/files/input_file.h"

namespace shardmat::petsc {

constexpr std::int64_t kMat = 1211216, kVec = 1211214, kIndexSet = 1211218;

enum class Kind { sparse, dense, vector, index_set };

/// Where an object lies in its file.
struct Object {
  Kind kind = Kind::sparse;
  int index_bytes = 4;
  std::int64_t rows = 0;  ///< of vectors: entries
  std::int64_t cols = 1;
  std::int64_t nnz = 0;      ///< of dense matrices and vectors: entries
  std::int64_t lengths = 0;  ///< offset of the row lengths; sparse matrices only
  std::int64_t columns = 0;  ///< offset of the columns, or of the indices of an index set
  std::int64_t values = 0;   ///< offset of the values
};

/// What a file holds, up to the first object that cannot be read.
struct Contents {
  std::vector<Object> objects;
  std::string fault;  ///< what is wrong behind these objects; empty if they are all
};

/// True if the file begins as a PETSc binary file does. Does not throw.
bool is_petsc_file(const std::filesystem::path& path);

/// Finds the objects; reads their headers, and row lengths where they alone tell the number of nonzeros. Each object lies
/// within the file. Throws Error(input) if the file begins with something else or its first object cannot be read.
Contents scan(const InputFile& file);

enum class Wanted { matrix, vector, dense, numbers };  ///< numbers: a vector or a dense matrix
bool is_wanted(const Object& object, Wanted wanted);

/// The object that `name` means: its number from 0, or for an empty name the only one of the kind that is wanted. Where a
/// matrix is wanted, the only sparse one goes before dense ones. Throws Error(input), which lists the objects, if there is
/// none, there are several, or it has another kind.
const Object& find(const InputFile& file, const Contents& contents, const std::string& name, Wanted wanted);

/// "sparse matrix, 975 × 975, 33,525 nonzeros".
std::string describe(const Object& object);

/// The block size in FILE.info; 1 without such a file or line, or if it is out of range.
std::int64_t block_size(const std::filesystem::path& path);

}  // namespace shardmat::petsc
