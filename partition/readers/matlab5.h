// MATLAB's files of versions 5 to 7 (save without -v7.3), which SciPy and Octave write, too: variables one after another,
// each by itself or compressed by zlib.
//
//   128 bytes    text; then 8 bytes for subsystems, the version 0x0100, and the letters that tell the order of bytes
//   variable     a tag (type, bytes), then elements with tags: flags and class, sizes, name; of a sparse matrix: row of each
//                nonzero from 0, columns + 1 pointers, values; of an array: values, column after column
// (MAT-File Format, MathWorks, R2023b.) The files are read here and by no library of others, so that damage is an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/host_vector.h"
#include "partition/files/input_file.h"
#include "partition/readers/input_choices.h"

namespace shardmat::matlab5 {

struct Variable {
  std::string name;
  int kind = 0;  ///< MATLAB's number of the class: 2 struct, 5 sparse, 6 double, 7 single, 8 to 15 integers
  bool complex = false, logical = false;
  std::int64_t rows = 0, cols = 0;
  std::int64_t most_nonzeros = 0;      ///< sparse: room for nonzeros; 0 else
  std::int64_t offset = 0, bytes = 0;  ///< of what follows the tag
  bool compressed = false;

  bool sparse() const { return kind == 5; }
  bool is_struct() const { return kind == 2; }
  bool is_opaque() const { return kind == 17; }
  /// An array of numbers with two dimensions.
  bool dense() const { return kind >= 6 && kind <= 15; }
};

/// True if the file begins as MATLAB's files of these versions do. Does not throw.
bool is_matlab5_file(const std::filesystem::path& path);

/// Throws Error(input), which says how to save it, if the file begins as those of Octave's save without a format do.
void refuse_octave_format(const std::filesystem::path& path);

/// The variables of the file, other kinds than numbers among them. Throws Error(input) if it is none of MATLAB's, truncated
/// or damaged.
std::vector<Variable> variables_of(const InputFile& file);

/// "sparse matrix, 975 × 975".
std::string describe(const Variable& variable);

/// The variable of this name; for an empty name the only sparse matrix. Throws Error(input), which lists the variables.
Variable find_sparse(const InputFile& file, const std::string& name, ComplexPart part = ComplexPart::none);

/// The variable of this name; for an empty name the one named first in `likely`, else the only array. Throws Error(input),
/// which lists the variables, for none and for several.
Variable find_array(const InputFile& file, const std::string& name, const std::vector<std::string>& likely);

/// The numbers of one variable in the order of the file; read once, from the first to the last.
class Contents {
 public:
  Contents(const InputFile& file, const Variable& variable);
  ~Contents();
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  /// Begins the next element; returns how many numbers it has.
  std::int64_t begin();
  /// As begin(), for the values of a logical matrix: MATLAB names them doubles and stores a byte each. `places`: how many
  /// row indices are stored, and so values, those of room to spare included.
  std::int64_t begin_logical(std::int64_t places);
  /// The next `count` numbers of the element. T is int64_t or double. Throws Error(input) if they are none.
  template <class T>
  void next(T* to, std::int64_t count);
  /// True if no element follows the one that was begun, whose rest is skipped.
  bool at_last();
  /// Skips to the end of the variable, so that zlib compares its checksum.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// An array of numbers, row by row. Throws Error(input) if it is complex, or one of the sparse logical matrices that Octave
/// writes as if they were full.
HostVector<double> read_dense(const InputFile& file, const Variable& variable);

}  // namespace shardmat::matlab5
