// Reads matrix files of other programs. Only the list in reader.cpp knows all readers. A reader has one of two ways: rows of
// any range (a RowSource) where the file has them in order, so that each rank reads its own; else entries in any order
// (an EntryReader), which the ranks sort out.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/progress.h"
#include "kernels/matrix/csr.h"
#include "partition/readers/input_choices.h"
#include "partition/source/row_source.h"

namespace shardmat {

class EntryReader;
struct ReadLimits;

struct ReadOptions {
  bool allow_nonfinite = false;  ///< accept NaN and infinity among the values
  Progress progress;             ///< bytes of the file read
  InputChoices choices{};        ///< what the user says about the file
  std::string object{};          ///< which matrix in the file; set by the functions below that take FILE:OBJECT
};

/// A matrix or a vector in a file that may hold several.
struct FileObject {
  std::string name;  ///< behind the colon of FILE:NAME; empty if the file's name is enough
  std::string text;  ///< for people: "sparse matrix, 975 × 975, 33,525 nonzeros"
  bool matrix = true;
};

/// A file format that can be read: one line in the list of reader.cpp. All functions take the file's name without an object.
struct Reader {
  std::string_view name;                               ///< "matrix-market"
  std::string_view suffixes{};                         ///< ".mtx .mtx.gz", for help and error messages; may be empty
  bool (*accepts)(const std::filesystem::path& path);  ///< decides by first bytes or suffix; does not throw
  /// Rows sorted, duplicates summed, validated. Null: the matrix is put together from rows or entries.
  HostCsr (*read)(const std::filesystem::path& path, const ReadOptions& options) = nullptr;
  /// For several ranks: see entry_reader.h. Null if there is open_rows.
  std::unique_ptr<EntryReader> (*open_entries)(const std::filesystem::path& path, const ReadOptions& options,
                                               const ReadLimits& limits) = nullptr;
  /// Opens the file so that any process can read any rows. Null for formats that do not allow this.
  std::unique_ptr<RowSource> (*open_rows)(const std::filesystem::path& path, const ReadOptions& options) = nullptr;
  /// What is in the file, without reading entries. Null for formats of one matrix a file.
  std::vector<FileObject> (*list)(const std::filesystem::path& path) = nullptr;
  std::string_view remark{};  ///< what reports say of a file that was read; may be empty
  bool complex = false;       ///< reads either part of complex values, see ComplexPart
  bool hdf5 = false;          ///< its files are HDF5, so that first bytes alone do not tell it from a shard file
};

std::span<const Reader> readers();

/// The format that the choices name or imply for FILE or FILE:OBJECT; empty if none. Throws Error(usage) for choices that
/// exclude each other.
std::string format_of(const std::string& argument, const InputChoices& choices);

/// True if `format` is the name of a reader, false for "shard". Throws Error(usage), which lists the names, for any other.
bool require_input_format(const std::string& format);

/// The reader that choices.format names, else the one that accepts `path`, a file's name without an object. Throws
/// Error(usage) for an unknown format; Error(input) with a remedy for a missing file, a directory, a batch of graphs, or a
/// file that no reader accepts.
const Reader& reader_of(const std::filesystem::path& path, const InputChoices& choices = {});

/// Reads FILE or FILE:OBJECT with the reader that accepts it. Rows sorted, duplicates summed, validated.
/// Throws Error(input) naming file, line and remedy for a missing, unknown, truncated or malformed file.
HostCsr read_matrix(const std::filesystem::path& path, const ReadOptions& options = {});

/// A matrix and the node and degree of freedom of each row; null if the file does not name them.
struct MatrixWithUnknowns {
  HostCsr matrix;
  std::shared_ptr<const UnknownList> unknowns;
};
/// As read_matrix().
MatrixWithUnknowns read_matrix_with_unknowns(const std::filesystem::path& path, const ReadOptions& options = {});

/// True if the file's format lets any process read any rows. False also for a file that cannot be read at all. Does not
/// throw.
bool gives_any_rows(const std::string& argument, const InputChoices& choices = {});

/// Opens FILE or FILE:OBJECT as rows that any process can read. REQUIRES: gives_any_rows(). Throws as read_matrix().
std::unique_ptr<RowSource> open_matrix_rows(const std::string& argument, const ReadOptions& options = {});

/// The remark of the reader that read_matrix() takes. Throws as reader_of().
std::string_view remark_on(const std::string& argument, const InputChoices& choices = {});

/// What the file holds: one object without a name for formats of one matrix a file.
std::vector<FileObject> list_objects(const std::filesystem::path& path, const InputChoices& choices = {});

}  // namespace shardmat
