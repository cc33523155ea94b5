// Vectors, and dense matrices with a few columns, in files. Any range of rows can be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kernels/base/host_vector.h"
#include "partition/hdf5/input.h"
#include "partition/readers/input_choices.h"

namespace shardmat {

/// A vector of a file, or an n × columns matrix. The format follows the suffix: .h5/.hdf5 (dataset of f32 or f64; default
/// dataset name `default_dataset`, for "x0" also "x", or FILE.h5:/name), .npy (little-endian f4/f8, in either order), .mtx
/// (array real general), .txt (a row a line). PETSc's binary files (a Vec, or a dense Mat for several columns; FILE:NUMBER)
/// are known by their first bytes. The shape is n × columns; with one column also n.
class VectorFile {
 public:
  static constexpr std::int64_t kAsStored = 0;  ///< as many columns as the file has

  /// `part`: of a .npy or .mtx file with complex numbers, which of the two is read. Throws Error(input) with file, place and
  /// remedy.
  VectorFile(const std::filesystem::path& path, const std::string& default_dataset, std::int64_t columns = 1,
             ComplexPart part = ComplexPart::none);

  /// The HDF5 file and dataset that these arguments name; nothing for other formats or invalid names.
  static std::optional<Hdf5Input> hdf5_input(const std::filesystem::path& path, const std::string& default_dataset);

  /// Rows.
  std::int64_t size() const { return size_; }
  std::int64_t columns() const { return columns_; }
  /// Rows [begin, end) as f64, row by row.
  HostVector<double> read(std::int64_t begin, std::int64_t end) const { return read_(begin, end); }

 private:
  std::int64_t size_ = 0, columns_ = 1;
  std::function<HostVector<double>(std::int64_t, std::int64_t)> read_;
};

/// Writes a vector of `size` entries, or a size × columns matrix, piece by piece in ascending order. The file gets its name
/// only in finish(): after an exception or a kill no file has this name.
class VectorWriter {
 public:
  /// f32 = store 4-byte values where the format has types (.h5, .npy). `files`: as partition/files/atomic_files.h describes.
  VectorWriter(const std::filesystem::path& path, const std::string& default_dataset, std::int64_t size, bool f32,
               std::int64_t columns = 1, std::int64_t files = 1);
  ~VectorWriter();
  VectorWriter(const VectorWriter&) = delete;
  VectorWriter& operator=(const VectorWriter&) = delete;

  /// `count` rows.
  void append(const double* values, std::int64_t count);
  /// Flushes to disk and renames. Throws Error(resources) when the disk is full.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The suffixes by which vectors are written, for people: ".h5, .npy, …".
std::string vector_suffixes();
/// Throws Error(usage), which lists the known suffixes, if a vector cannot be written to this name. Call it before long
/// work.
void check_vector_suffix(const std::filesystem::path& path);
/// Removes the object from a vector's name, as the dataset from FILE.h5:DATASET. Any other text is returned unchanged.
std::filesystem::path vector_file_name(const std::filesystem::path& path);
/// Throws what VectorWriter would throw for the file's name and directory, and for so many columns and files. Call it before
/// long work.
void check_vector_writable(const std::filesystem::path& path, std::int64_t columns = 1, std::int64_t files = 1);

}  // namespace shardmat
