// The formats of vectors that other programs write, beside HDF5, .npy and Matrix Market arrays (vector_file.cpp). A new one
// is a file and a line in the list of vector_formats.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/host_vector.h"
#include "partition/files/atomic_file.h"

namespace shardmat {

/// An opened vector, or n × columns matrix.
struct VectorContents {
  std::int64_t size = 0, columns = 1;  ///< rows; columns of each
  /// Rows [begin, end) as f64, row by row.
  std::function<HostVector<double>(std::int64_t begin, std::int64_t end)> read;
};

/// Where a writer puts rows. close() must be called once all are there; it throws if they are not on their way to disk.
class VectorSink {
 public:
  virtual ~VectorSink() = default;
  /// `count` rows.
  virtual void append(const double* values, std::int64_t count) = 0;
  virtual void close() = 0;
};

/// Which vector of a file is meant.
struct VectorChoice {
  std::string object;  ///< its name or number; may be empty
  /// What the vector is for: "x", "b", "x0" … Without an object, the vector of this name is taken, else the only one.
  /// Several are refused.
  std::string role;
};

/// The names by which a vector of this role is looked for, the best first: of "x0" they are x0 and x.
std::vector<std::string> names_of_role(const std::string& role);

struct VectorFormat {
  std::string_view name;                               ///< "petsc"
  std::string_view suffix{};                           ///< of outputs: ".petsc"; empty for formats that are only read
  bool (*accepts)(const std::filesystem::path& path);  ///< decides by first bytes or suffix; does not throw
  /// `columns`: so many, or VectorFile::kAsStored. Throws Error(input) with file, place and remedy.
  VectorContents (*open)(const std::filesystem::path& path, const VectorChoice& choice, std::int64_t columns);
  /// Writes the temporary of `file`, of `size` rows. Null for formats that are only read.
  std::unique_ptr<VectorSink> (*make_sink)(const AtomicFile& file, std::int64_t size, std::int64_t columns) = nullptr;
  /// In place of make_sink() if the format has a file for each rank: writes that of one rank, the rows [begin, end).
  std::unique_ptr<VectorSink> (*make_part_sink)(const AtomicFile& file, std::int64_t size, std::int64_t begin,
                                                std::int64_t end, std::int64_t columns) = nullptr;
  bool one_column = false;  ///< an output holds one vector
};

std::span<const VectorFormat> vector_formats();

/// The format that accepts an existing file, or that has its suffix; null without one.
const VectorFormat* vector_format_of(const std::filesystem::path& path);
/// The format that writes files of this name; null without one.
const VectorFormat* vector_format_for(const std::filesystem::path& path);
/// Throws Error(usage) if files of the format do not hold so many columns.
void require_columns(const VectorFormat& format, const std::filesystem::path& path, std::int64_t columns);

/// The setting of an error about a file of `found` columns that could be read with this number; nothing for a single row,
/// which is a vector.
std::string columns_setting(std::int64_t rows, std::int64_t found);

// The functions behind the lines of the list.
bool accepts_petsc_vector(const std::filesystem::path& path);
VectorContents open_petsc_vector(const std::filesystem::path& path, const VectorChoice& choice, std::int64_t columns);
/// A Vec, or a dense Mat if there are several columns.
std::unique_ptr<VectorSink> make_petsc_sink(const AtomicFile& file, std::int64_t size, std::int64_t columns);

bool accepts_hypre_vector(const std::filesystem::path& path);
VectorContents open_hypre_vector(const std::filesystem::path& path, const VectorChoice& choice, std::int64_t columns);
/// REQUIRES: one column. So do binary files.
std::unique_ptr<VectorSink> make_hypre_text_sink(const AtomicFile& file, std::int64_t size, std::int64_t begin,
                                                 std::int64_t end, std::int64_t columns);
std::unique_ptr<VectorSink> make_hypre_binary_sink(const AtomicFile& file, std::int64_t size, std::int64_t begin,
                                                   std::int64_t end, std::int64_t columns);

bool accepts_harwell_boeing_vector(const std::filesystem::path& path);
/// The object is rhs, guess or solution, with a number from 1 if there are several and one column is read; else all are. Of
/// several kinds the role "b" takes the right-hand sides and "x0" the guesses.
VectorContents open_harwell_boeing_vector(const std::filesystem::path& path, const VectorChoice& choice,
                                          std::int64_t columns);

bool accepts_matlab5_vector(const std::filesystem::path& path);
/// A row is a vector, too.
VectorContents open_matlab5_vector(const std::filesystem::path& path, const VectorChoice& choice, std::int64_t columns);

bool accepts_matlab_vector(const std::filesystem::path& path);
/// A .mat file with one array of the name of the file: of version 5 if it has less than 2 GB, else of 7.3, which is HDF5.
std::unique_ptr<VectorSink> make_matlab_sink(const AtomicFile& file, std::int64_t size, std::int64_t columns);
/// Version 7.3.
std::unique_ptr<VectorSink> make_matlab_hdf5_sink(const AtomicFile& file, std::int64_t size, std::int64_t columns);

bool accepts_freefem_vector(const std::filesystem::path& path);
VectorContents open_freefem_vector(const std::filesystem::path& path, const VectorChoice& choice, std::int64_t columns);

bool accepts_text_vector(const std::filesystem::path& path);
/// Plain text: the entries of a row on a line, blanks or commas between them; lines that begin with # or % are left out.
VectorContents open_text_vector(const std::filesystem::path& path, const VectorChoice& choice, std::int64_t columns);
std::unique_ptr<VectorSink> make_text_sink(const AtomicFile& file, std::int64_t size, std::int64_t columns);

}  // namespace shardmat
