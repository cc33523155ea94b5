// Writes HDF5 files: groups, arrays of fixed extent, attributes, and at the end the description (own_description.h). Every
// call either succeeds or throws an Error with the file, the object and the reason. HDF5 has global state: only one thread
// of a process may be inside these functions at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "partition/files/atomic_file.h"
#include "partition/hdf5/description.h"
#include "partition/hdf5/handle.h"
#include "partition/hdf5/output_driver.h"

namespace shardmat {

/// An array in a file that is being written. Ranges are along the first dimension; the other dimensions are always written
/// as a whole. T is one of int32_t, int64_t, uint64_t, float, double, and is the stored type.
class Hdf5OutputDataset {
 public:
  Hdf5OutputDataset() = default;

  /// Writes entries [begin, begin + count). Throws Error(resources).
  template <class T>
  void write(std::int64_t begin, std::int64_t count, const T* data);

 private:
  friend class Hdf5Writer;
  void write_bytes(std::int64_t begin, std::int64_t count, std::int64_t type, std::size_t element_bytes,
                   const unsigned char* data);

  Hdf5Handle handle_;
  const Hdf5OutputStatus* output_ = nullptr;
  std::vector<std::int64_t> shape_;
  std::string place_;
};

class Hdf5Writer {
 public:
  /// Creates the temporary of `target` and reserves `expected_bytes`, if the file system can reserve. Throws
  /// Error(resources) if this fails. `user_block`: bytes before the HDF5 file, for programs that want them: none, or a power
  /// of two from 512 on.
  explicit Hdf5Writer(const AtomicFile& target, std::int64_t expected_bytes = 0, std::string user_block = {});
  /// The same without a temporary.
  explicit Hdf5Writer(const std::filesystem::path& path) : Hdf5Writer(path, path, 0, {}) {}

  /// Flushes and closes the file and appends the description. REQUIRES: all datasets are destroyed. Throws Error(resources),
  /// e.g. for a full disk.
  void close();

  /// True if a group or dataset with this name exists.
  bool has(const std::string& name) const { return description_.objects.count(name) > 0; }
  void create_group(const std::string& name);
  /// Creates a dataset with fixed extent, contiguous, little-endian, not filled.
  template <class T>
  Hdf5OutputDataset create_dataset(const std::string& name, const std::vector<std::int64_t>& shape);

  /// Attributes of the group or dataset `object` ("/" is the root). T is int64_t, uint64_t or double.
  void write_attribute(const std::string& object, const std::string& name, const std::string& value);
  template <class T>
  void write_attribute(const std::string& object, const std::string& name, T value);

 private:
  Hdf5Writer(const std::filesystem::path& written, const std::filesystem::path& path, std::int64_t expected_bytes,
             std::string user_block);
  void write_user_block() const;
  void write_attribute(const std::string& object, const std::string& name, std::int64_t type, const void* value);
  Hdf5Object& describe(const std::string& name, Hdf5Object::Kind kind);
  void locate_datasets();

  std::unique_ptr<Hdf5OutputStatus> output_;  // outlives the handle
  Hdf5Handle handle_;
  std::filesystem::path written_;
  std::string path_;
  std::string user_block_;
  Hdf5Description description_;
};

}  // namespace shardmat
