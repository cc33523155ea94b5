// HDF5, checked: every call either succeeds or throws an Error that names the file, the object and HDF5's own
// reason; handles close themselves. From the first use on, HDF5 itself prints nothing in this process. The
// difference between a serial and a parallel HDF5 library is known in hdf5.cpp and nowhere else.
//
// HDF5 keeps global state: only one thread of a process may be inside these functions at a time.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "partition/atomic_file.h"
#include "partition/hdf5_output.h"

namespace shardmat {

/// Owns one HDF5 id of any kind. Move-only; closing never throws.
class Hdf5Handle {
 public:
  using Close = int (*)(std::int64_t);
  Hdf5Handle() = default;
  Hdf5Handle(std::int64_t id, Close close) : id_(id), close_(close) {}
  ~Hdf5Handle() { reset(); }
  Hdf5Handle(Hdf5Handle&& other) noexcept;
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept;

  std::int64_t id() const { return id_; }
  /// Closes now; true if nothing was open or HDF5 closed it without complaint.
  bool reset() noexcept;

 private:
  std::int64_t id_ = -1;
  Close close_ = nullptr;
};

/// Element type of a dataset as stored.
enum class Hdf5Type { i32, i64, u64, f32, f64, other_integer, other_float, other };

/// Bytes that one transfer may move: HDF5 1.10 on MPI-IO fails from 2 GiB on, so longer ones are cut.
constexpr std::int64_t kHdf5TransferBytes = std::int64_t{1} << 30;

/// An array of a file. Ranges run along the first dimension; the other dimensions are always whole.
/// T is one of int32_t, int64_t, uint64_t, float, double; HDF5 converts where the stored type differs.
class Hdf5Dataset {
 public:
  Hdf5Dataset() = default;

  const std::vector<std::int64_t>& shape() const { return shape_; }
  /// Entries along the first dimension; 1 for a scalar.
  std::int64_t size() const { return shape_.empty() ? 1 : shape_.front(); }
  Hdf5Type type() const { return type_; }
  /// "bar.h5: dataset /values", for messages.
  const std::string& place() const { return place_; }

  /// Reads [begin, begin + count) into `out`. Throws Error(input).
  template <class T>
  void read(std::int64_t begin, std::int64_t count, T* out) const;
  /// Throws Error(resources).
  template <class T>
  void write(std::int64_t begin, std::int64_t count, const T* data);

 private:
  friend class Hdf5File;
  void transfer(std::int64_t begin, std::int64_t count, std::int64_t memory_type, std::size_t element_bytes,
                unsigned char* read_to, const unsigned char* write_from) const;

  Hdf5Handle handle_;
  const Hdf5OutputStatus* output_ = nullptr;  // of the file; null if it is only read
  std::vector<std::int64_t> shape_;
  Hdf5Type type_ = Hdf5Type::other;
  std::size_t stored_bytes_ = 0;
  std::string place_;
};

class Hdf5File {
 public:
  Hdf5File() = default;

  /// Opens for reading, without locking: works on read-only file systems and beside other readers.
  /// Throws Error(input) if it is missing, unreadable, truncated or no HDF5 file.
  static Hdf5File open(const std::filesystem::path& path);
  /// The same through MPI-IO, collective over `communicator`, as is the destructor. Transfers stay
  /// independent.
  static Hdf5File open_parallel(const std::filesystem::path& path, MPI_Comm communicator);
  /// Creates the temporary of `target`, and reserves room for `expected_bytes` where the file system can. Throws
  /// Error(resources) if that is not possible.
  static Hdf5File create(const AtomicFile& target, std::int64_t expected_bytes = 0) {
    target.require_file("HDF5");
    return create(target.temporary(), target.path(), expected_bytes);
  }
  /// The same without a temporary.
  static Hdf5File create(const std::filesystem::path& path) { return create(path, path, 0); }
  /// True if the HDF5 library this was built with has MPI-IO.
  static bool parallel_available();

  const std::string& path() const { return path_; }
  /// Flushes and closes a created file; all its datasets must be gone. Throws Error(resources), e.g. for a
  /// full disk.
  void close();

  /// True if every link of the path `name` exists.
  bool has(const std::string& name) const;
  /// Names of the links in a group, ascending.
  std::vector<std::string> children(const std::string& group) const;
  /// Throws Error(input) if there is no dataset of this name.
  Hdf5Dataset dataset(const std::string& name) const;

  void create_group(const std::string& name);
  /// Fixed extent, contiguous, little-endian, not filled. T as for Hdf5Dataset::read.
  template <class T>
  Hdf5Dataset create_dataset(const std::string& name, const std::vector<std::int64_t>& shape);

  // Attributes of the group or dataset `object` ("/" is the root). Reading throws Error(input) if it is
  // missing or of another kind. Strings may be of fixed or variable length; ours are fixed. T is int64_t,
  // uint64_t or double.
  bool has_attribute(const std::string& object, const std::string& name) const;
  std::string string_attribute(const std::string& object, const std::string& name) const;
  template <class T>
  T attribute(const std::string& object, const std::string& name) const;
  void write_attribute(const std::string& object, const std::string& name, const std::string& value);
  template <class T>
  void write_attribute(const std::string& object, const std::string& name, T value);

 private:
  static Hdf5File create(const std::filesystem::path& written, const std::filesystem::path& path,
                         std::int64_t expected_bytes);
  void write_attribute(const std::string& object, const std::string& name, std::int64_t type, const void* value);

  std::unique_ptr<Hdf5OutputStatus> output_;  // outlives the handle; null if the file is only read
  Hdf5Handle handle_;
  std::string path_;
};

}  // namespace shardmat
