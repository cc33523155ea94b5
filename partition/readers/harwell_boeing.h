// Harwell-Boeing and Rutherford-Boeing files: columns of a matrix, and vectors, in fixed fields of Fortran.
//
//   line 1   title (72 characters), key (8)
//   line 2   lines in all, of pointers, of row indices, of values (and, Harwell-Boeing, of vectors)
//   line 3   type, rows, columns, entries, elemental entries
//   line 4   formats of pointers, indices, values and vectors, as (16I5) or (1P,4E20.12)
//   line 5   Harwell-Boeing with vectors: their type, the number of right-hand sides, the number of their row indices
// The type of a matrix has three letters: R real, I integer, P pattern, C complex; U unsymmetric, S symmetric, Z
// skew-symmetric, H Hermitian, R rectangular; A assembled, E elemental. Of S and Z the file has the lower triangle. Indices
// begin with 1. The type of the vectors has three letters, too: F full or M in the form of the matrix; G for as many
// starting guesses; X for as many exact solutions. Each vector has an entry for each row of the matrix. Right-hand sides,
// guesses and solutions begin on new lines.
//
// In Rutherford-Boeing vectors have files of their own:
//
//   line 1   title (72 characters), key (8)
//   line 2   kind (rhs right-hand sides, sln solutions, est guesses), side, form (d or blank: full, s: sparse), key, r or i,
//            rows, vectors, entries
//   line 3   format
// A field may touch the next one.
// (User's Guide for the Harwell-Boeing Sparse Matrix Collection, Duff, Grimes and Lewis 1992; The Rutherford-Boeing Sparse
// Matrix Collection, the same, 1997.)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "partition/readers/harwell_boeing_format.h"
#include "partition/readers/text_source.h"

namespace shardmat::harwell_boeing {

/// The numbers of lines that a header promises.
struct LineCounts {
  std::int64_t all = 0, pointers = 0, indices = 0, values = 0, vectors = 0;
};

struct Header {
  std::string type;  ///< in capitals
  std::int64_t rows = 0, cols = 0, entries = 0;
  Fields pointers, indices, values;
  LineCounts lines;
  std::string vector_format, vector_line;  ///< as in the file; empty if it has no vectors
  /// Lines of the file before its vectors.
  std::int64_t lines_of_matrix() const {
    return (vector_line.empty() ? 4 : 5) + lines.pointers + lines.indices + lines.values;
  }
  bool pattern() const { return type[0] == 'P'; }
  bool mirrored() const { return type[1] == 'S' || type[1] == 'Z'; }
  double sign() const { return type[1] == 'Z' ? -1 : 1; }
};

/// Reads the header of a matrix, with `lines` behind it. Throws Error(input) for one that is damaged or not supported, or
/// whose numbers of lines do not fit to its formats and sizes.
Header read_header(LineCursor& lines);

/// Throws Error(input) if the header promises more columns or entries than the file has room for.
void require_room(const TextSource& source, const Header& header, const LineCursor& lines);

/// Reads on to the end. Throws Error(input) unless the file has `promised` lines; empty ones at its end do not count.
void require_lines(LineCursor& lines, std::int64_t promised);

/// True if the first lines are those of a matrix. Does not throw.
bool is_matrix_file(const std::filesystem::path& path);
/// True if they are those of a file of Rutherford-Boeing without a matrix. Does not throw.
bool is_auxiliary_file(const std::filesystem::path& path);

/// Vectors of a file.
struct Vectors {
  std::string name;        ///< "rhs", "guess" or "solution"
  std::int64_t count = 0;  ///< of them
  std::int64_t line = 0;   ///< lines of the file before them
};

/// All vectors of a file. They have the same format and size.
struct VectorList {
  std::vector<Vectors> kinds;
  std::string refused{};  ///< why they cannot be read; empty if they can
  Fields fields;
  std::int64_t rows = 0;
  std::int64_t file_lines = 0;  ///< of the whole file
};

/// What the headers say about vectors in the file. Throws Error(input) if they are damaged, or promise more than the file
/// has room for.
VectorList vectors_of(TextSource& source);

/// The whole numbers at the start of `text`, up to other text.
std::vector<std::int64_t> whole_numbers(std::string_view text);

/// Reads a value as Fortran does: exponents may be D, or only a sign, as 1.5-300; a number without a point has the decimals
/// of the format.
double real(std::string_view text, const Fields& fields, bool allow_nonfinite, const LineCursor& lines);

/// Fixed fields, one after another, over lines. A line with as many words as there should be fields is cut at its blanks:
/// SciPy's fields are narrower than its header says. Text from column 73 on, behind the fields, is a number of the line.
class FieldCursor {
 public:
  /// `total`: of all fields. `what`: names one in messages.
  FieldCursor(LineCursor& lines, const Fields& fields, std::int64_t total, const char* what)
      : lines_(lines), fields_(fields), left_(total), what_(what) {}

  /// The next field without blanks around it. Throws Error(input) if it is missing.
  std::string_view next();

 private:
  void next_line();
  void cut_at_columns(std::string_view line, const std::vector<int>& begins, std::size_t count);

  LineCursor& lines_;
  Fields fields_;
  std::int64_t left_, line_ = 0;
  const char* what_;
  std::vector<std::string_view> cut_;  ///< the fields of a line
  std::ptrdiff_t at_ = 0;
};

}  // namespace shardmat::harwell_boeing
