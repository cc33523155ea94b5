// HDF5 files as input. Their contents are known from a description; numbers are read with pread and converted here. This
// process never parses HDF5 metadata, so a damaged or hostile file only causes an Error that names the file and the object.
// References to other files (external links, external storage, virtual datasets) are refused, unless the environment has
// SHARDMAT_HDF5_LINKS=follow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "partition/hdf5/description.h"

namespace shardmat {

/// Element type of a dataset as stored.
enum class Hdf5Type { i32, i64, u64, f32, f64, other_integer, other_float, other };

/// An array in a file, with one or two dimensions, or a single value. Ranges are along the first dimension; the second
/// dimension is always read as a whole. T is one of int32_t, int64_t, uint64_t, float, double; numbers of other stored types
/// are converted. Keeps its file open. Any thread may read.
class Hdf5Dataset {
 public:
  Hdf5Dataset() = default;

  const std::vector<std::int64_t>& shape() const;
  /// Entries along the first dimension; 1 for a single value.
  std::int64_t size() const { return shape().empty() ? 1 : shape().front(); }
  Hdf5Type type() const;
  /// True if the numbers lie in one stretch of one file: then reading costs no more in many small ranges than in one.
  bool contiguous() const;
  /// "bar.h5: dataset /values", for messages.
  const std::string& place() const { return place_; }

  /// Reads [begin, begin + count) into `out`, which has room for count (· shape()[1]) numbers. Throws Error(input) if the
  /// file has become shorter, a chunk is damaged, or a number does not fit.
  template <class T>
  void read(std::int64_t begin, std::int64_t count, T* out) const;

 private:
  friend class Hdf5File;
  struct Opened;
  template <class T>
  void read_extents(std::int64_t first, std::int64_t count, T* out) const;
  template <class T>
  void read_parts(std::int64_t begin, std::int64_t count, T* out) const;
  template <class T>
  void read_chunks(std::int64_t begin, std::int64_t count, T* out) const;

  struct Decoded;
  std::shared_ptr<const std::string> decoded_chunk(std::int64_t index, std::int64_t bytes) const;

  std::shared_ptr<const Opened> file_;
  const Hdf5Object* object_ = nullptr;
  std::string place_;
  std::shared_ptr<Decoded> decoded_;  ///< chunked datasets: the last large chunk, for reading in slices
};

class Hdf5File {
 public:
  Hdf5File() = default;

  /// Opens the file for reading; other readers may read it, too. `objects` names the datasets that will be read, and groups
  /// whose whole contents must be known. Of other objects, only names in the root are known. Throws Error(input) if the file
  /// is missing, unreadable, not a regular file, truncated, or no HDF5 file.
  static Hdf5File open(const std::filesystem::path& path, const std::vector<std::string>& objects = {});

  const std::string& path() const;
  /// Bytes of the whole file.
  std::int64_t bytes() const;

  /// True if an object with this name exists in the root or in a known group.
  bool has(const std::string& name) const;
  /// The names in a known group, ascending.
  std::vector<std::string> children(const std::string& group) const;
  /// Throws Error(input) if the dataset does not exist, refers to another file, or has numbers of an unsupported type, or if
  /// the file is too short for its numbers.
  Hdf5Dataset dataset(const std::string& name) const;

  // Attributes of a known group or dataset ("/" is the root). Reading throws Error(input) if the attribute is missing or has
  // another kind. T is int64_t, uint64_t or double.
  bool has_attribute(const std::string& object, const std::string& name) const;
  std::string string_attribute(const std::string& object, const std::string& name) const;
  /// Of 2 to 16 integers.
  std::vector<std::int64_t> integers_attribute(const std::string& object, const std::string& name) const;
  template <class T>
  T attribute(const std::string& object, const std::string& name) const;

  /// Compares the description at the end of a file that Shardmat wrote with what the HDF5 library finds. Throws Error(input)
  /// if they differ. Does nothing for other files.
  void verify_description() const;

 private:
  const Hdf5Attribute& attribute_of(const std::string& object, const std::string& name) const;

  std::shared_ptr<const Hdf5Dataset::Opened> file_;
};

}  // namespace shardmat
