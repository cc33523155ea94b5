// HDF5 files as input: what they hold comes from a description, numbers are read from the file with pread and converted
// here. Nothing in this process parses HDF5 metadata, so that a damaged or hostile file ends in an Error that names the
// file and the object. What refers to other files (external links, external storage, virtual datasets) is refused unless
// the environment says SHARDMAT_HDF5_LINKS=follow.
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

/// An array of a file, of one or two dimensions, or a single value. Ranges run along the first dimension; the other is
/// always whole. T is one of int32_t, int64_t, uint64_t, float, double; numbers are converted where they are stored as
/// others. Keeps its file open. Any thread may read.
class Hdf5Dataset {
 public:
  Hdf5Dataset() = default;

  const std::vector<std::int64_t>& shape() const;
  /// Entries along the first dimension; 1 for a single value.
  std::int64_t size() const { return shape().empty() ? 1 : shape().front(); }
  Hdf5Type type() const;
  /// "bar.h5: dataset /values", for messages.
  const std::string& place() const { return place_; }

  /// Reads [begin, begin + count) into `out`, which holds count · shape()[1] … numbers. Throws Error(input) if the file has
  /// become shorter, a chunk is damaged, or a number does not fit.
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
  std::shared_ptr<Decoded> decoded_;  ///< the last large chunk, for reading in slices; of chunked datasets
};

class Hdf5File {
 public:
  Hdf5File() = default;

  /// Opens for reading, beside other readers. `objects` names the datasets that will be read, and groups to be known with
  /// all that is in them; of all other objects only the names in the root. Throws Error(input) if the file is missing,
  /// unreadable, not a regular file, truncated or no HDF5 file.
  static Hdf5File open(const std::filesystem::path& path, const std::vector<std::string>& objects = {});

  const std::string& path() const;
  /// Of the whole file.
  std::int64_t bytes() const;

  /// True if there is a group, a dataset or anything else of this name, in the root or in a group that is known.
  bool has(const std::string& name) const;
  /// Names in a group that is known, ascending.
  std::vector<std::string> children(const std::string& group) const;
  /// Throws Error(input) if there is no such dataset, if it refers to another file, if its numbers cannot be read here, or
  /// if the file is too short for them.
  Hdf5Dataset dataset(const std::string& name) const;

  // Attributes of a group or dataset that is known ("/" is the root). Reading throws Error(input) if it is missing or of
  // another kind. T is int64_t, uint64_t or double.
  bool has_attribute(const std::string& object, const std::string& name) const;
  std::string string_attribute(const std::string& object, const std::string& name) const;
  template <class T>
  T attribute(const std::string& object, const std::string& name) const;

  /// Compares the description at the end of a file of ours with what the HDF5 library finds. Throws Error(input) if they
  /// differ. Nothing to compare in other files.
  void verify_description() const;

 private:
  const Hdf5Attribute& attribute_of(const std::string& object, const std::string& name) const;

  std::shared_ptr<const Hdf5Dataset::Opened> file_;
};

}  // namespace shardmat
