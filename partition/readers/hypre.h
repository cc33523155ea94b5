// hypre's IJ matrices and vectors: each rank of the program that wrote them wrote a file, NAME.00000, NAME.00001 …, or
// NAME.00000.bin … in binary.
//
//   text matrix    "ilower iupper jlower jupper", then a line "row column value" for each entry
//   text vector    "jlower jupper", then a line "row value" for each entry
//   binary matrix  11 numbers of 8 bytes: 1, bytes of an index, bytes of a value, global rows, columns and entries, entries
//                  here, ilower, iupper, jlower, jupper; then rows, columns and values of the entries
//   binary vector  8 numbers of 8 bytes: 1, bytes of a value, jlower, jupper, global entries, entries here, components,
//                  storage of components; then the values
// All indices are global. They begin with the lowest ilower, mostly 0. Binary numbers have their lowest byte first.
// (hypre sources: HYPRE_IJMatrix.c, HYPRE_IJVector.c, par_csr_matrix.c, par_vector.c)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shardmat::hypre {

/// The file of one rank.
struct Part {
  std::filesystem::path path;
  bool binary = false;
  bool vector = false;
  std::int64_t first_row = 0, end_row = 0;  ///< of this rank
  std::int64_t first_col = 0, end_col = 0;  ///< of matrices
  std::int64_t bytes = 0;                   ///< of the file
  std::int64_t body = 0;                    ///< offset of the entries
  std::int64_t entries = 0;                 ///< of binary files; of text files the most that fit
  int index_bytes = 8, value_bytes = 8;     ///< of binary files
};

/// The files of a matrix or vector, in the order of the ranks. Their rows follow one another.
struct Parts {
  std::string name;  ///< as given
  std::vector<Part> parts;
  std::int64_t first_row = 0, rows = 0, first_col = 0, cols = 0;
  std::int64_t bytes = 0, entries = 0;  ///< of all files
};

/// True if `path` stands for files of ranks by hypre's names. Does not throw.
bool has_hypre_name(const std::filesystem::path& path);

/// True if `path` has the header of one rank's file of a vector, or of a matrix. Does not throw.
bool is_part(const std::filesystem::path& path, bool vector);

/// Reads the headers of all files. Throws Error(input) naming the file if one is damaged, of another kind than the first, or
/// truncated; naming both files if their rows overlap or leave a gap.
Parts open_parts(const std::filesystem::path& path, bool vector);

}  // namespace shardmat::hypre
