#include "partition/hdf5/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "partition/files/output_file.h"
#include "partition/hdf5/environment.h"
#include "partition/hdf5/library.h"
#include "partition/hdf5/own_description.h"

namespace shardmat {
namespace {

/// Bytes that one call may move: HDF5 1.10 fails from 2 GiB on.
constexpr std::int64_t kTransferBytes = std::int64_t{1} << 30;

void require_written(const Hdf5OutputStatus& output, const std::string& place) {
  if (output.error != 0) fail_write(place, std::strerror(output.error));
}

/// The result of a call that writes, or an Error with the system's reason why it cannot.
template <class Call>
auto checked_write(const Hdf5OutputStatus& output, const std::string& place, Call&& call) {
  silence_hdf5();
  const auto result = call();
  require_written(output, place);
  return checked_hdf5(ErrorKind::resources, place, "write it", [&] { return result; });
}

// Native types double as stored types: little-endian on every machine this builds for.
hid_t native(const std::int32_t*) { return H5T_NATIVE_INT32; }
hid_t native(const std::int64_t*) { return H5T_NATIVE_INT64; }
hid_t native(const std::uint64_t*) { return H5T_NATIVE_UINT64; }
hid_t native(const float*) { return H5T_NATIVE_FLOAT; }
hid_t native(const double*) { return H5T_NATIVE_DOUBLE; }

template <class T>
Hdf5Number number_of() {
  using Kind = Hdf5Number::Kind;
  constexpr Kind kKind = std::is_floating_point_v<T> ? Kind::floating_point
                         : std::is_signed_v<T>       ? Kind::signed_integer
                                                     : Kind::unsigned_integer;
  return {kKind, sizeof(T), false, ""};
}

Hdf5Handle property_list(hid_t kind) {
  return {checked_hdf5(ErrorKind::internal, "HDF5", "make a property list", [&] { return H5Pcreate(kind); }),
          close_quietly<H5Pclose>};
}

}  // namespace

Hdf5Writer::Hdf5Writer(const AtomicFile& target, std::int64_t expected_bytes, std::string user_block)
    : Hdf5Writer((target.require_file("HDF5"), target.temporary()), target.path(), expected_bytes, std::move(user_block)) {}

Hdf5Writer::Hdf5Writer(const std::filesystem::path& written, const std::filesystem::path& path, std::int64_t expected_bytes,
                       std::string user_block)
    : output_(std::make_unique<Hdf5OutputStatus>()),
      written_(written),
      path_(path.string()),
      user_block_(std::move(user_block)) {
  refuse_other_hdf5_drivers();
  const Hdf5Handle access = property_list(H5P_FILE_ACCESS);
  // Locks fail on read-only and some network file systems, and our files never change once they have their name.
  checked_hdf5(ErrorKind::internal, path_, "switch off file locking",
               [&] { return H5Pset_file_locking(access.id(), false, true); });
  // The format of HDF5 1.8 has checksums on all its metadata and is read by everything in use.
  checked_hdf5(ErrorKind::internal, path_, "choose the HDF5 format",
               [&] { return H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_V18); });
  output_->expected_bytes = expected_bytes;
  use_output_driver(access.id(), output_.get());
  const Hdf5Handle creation = property_list(H5P_FILE_CREATE);
  checked_hdf5(ErrorKind::internal, path_, "leave room before it",
               [&] { return H5Pset_userblock(creation.id(), user_block_.size()); });
  handle_ = Hdf5Handle(
      checked_write(*output_, path_, [&] { return H5Fcreate(written.c_str(), H5F_ACC_TRUNC, creation.id(), access.id()); }),
      close_quietly<H5Fclose>);
  describe("/", Hdf5Object::Kind::group);
}

void Hdf5Writer::close() {
  checked_write(*output_, path_, [&] { return H5Fflush(handle_.id(), H5F_SCOPE_LOCAL); });
  locate_datasets();
  const bool closed = handle_.reset();
  require_written(*output_, path_);
  if (!closed) throw Error(ErrorKind::internal, fmt::format("{}: HDF5 cannot close it", path_));
  write_user_block();
  append_description(written_, description_, path_);
}

void Hdf5Writer::write_user_block() const {
  if (user_block_.empty()) return;
  const int descriptor = ::open(written_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) fail_write(path_, std::strerror(errno));
  const ssize_t put = ::pwrite(descriptor, user_block_.data(), user_block_.size(), 0);
  const int error = put < 0 ? errno : put < std::ssize(user_block_) ? ENOSPC : 0;
  if (::close(descriptor) != 0 || error != 0) fail_write(path_, std::strerror(error != 0 ? error : errno));
}

/// Remembers the object, as a child of its group, too.
Hdf5Object& Hdf5Writer::describe(const std::string& name, Hdf5Object::Kind kind) {
  if (name != "/") {
    const std::size_t slash = name.rfind('/');
    std::vector<std::string>& children = description_.objects[slash == 0 ? "/" : name.substr(0, slash)].children;
    children.push_back(name.substr(slash + 1));
    std::sort(children.begin(), children.end());
  }
  Hdf5Object& object = description_.objects[name];
  object.kind = kind;
  return object;
}

void Hdf5Writer::locate_datasets() {
  for (auto& [name, object] : description_.objects) {
    if (object.kind != Hdf5Object::Kind::dataset) continue;
    object.located = true;
    const Hdf5Handle dataset(checked_write(*output_, fmt::format("{}: dataset {}", path_, name),
                                           [&] { return H5Dopen2(handle_.id(), name.c_str(), H5P_DEFAULT); }),
                             close_quietly<H5Dclose>);
    const haddr_t offset = H5Dget_offset(dataset.id());
    if (offset != HADDR_UNDEF)
      object.extents = {
          {"", static_cast<std::int64_t>(offset), static_cast<std::int64_t>(H5Dget_storage_size(dataset.id()))}};
  }
}

void Hdf5Writer::create_group(const std::string& name) {
  // Attributes stay in the group's header: a heap of their own, from nine on, would cost kilobytes for each partition.
  const Hdf5Handle list = property_list(H5P_GROUP_CREATE);
  const auto get = [&](auto&& call) { return checked_write(*output_, fmt::format("{}: group {}", path_, name), call); };
  get([&] { return H5Pset_attr_phase_change(list.id(), 255, 0); });
  const Hdf5Handle group(get([&] { return H5Gcreate2(handle_.id(), name.c_str(), H5P_DEFAULT, list.id(), H5P_DEFAULT); }),
                         close_quietly<H5Gclose>);
  describe(name, Hdf5Object::Kind::group);
}

template <class T>
Hdf5OutputDataset Hdf5Writer::create_dataset(const std::string& name, const std::vector<std::int64_t>& shape) {
  Hdf5OutputDataset result;
  result.place_ = fmt::format("{}: dataset {}", path_, name);
  result.shape_ = shape;
  result.output_ = output_.get();
  const auto get = [&](auto&& call) { return checked_write(*output_, result.place_, call); };
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  const Hdf5Handle space(get([&] { return H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr); }),
                         close_quietly<H5Sclose>);
  const Hdf5Handle list = property_list(H5P_DATASET_CREATE);
  get([&] { return H5Pset_fill_time(list.id(), H5D_FILL_TIME_NEVER); });
  const hid_t type = native(static_cast<T*>(nullptr));
  result.handle_ = Hdf5Handle(
      get([&] { return H5Dcreate2(handle_.id(), name.c_str(), type, space.id(), H5P_DEFAULT, list.id(), H5P_DEFAULT); }),
      close_quietly<H5Dclose>);
  Hdf5Object& object = describe(name, Hdf5Object::Kind::dataset);
  object.shape = shape;
  object.number = number_of<T>();
  return result;
}

void Hdf5OutputDataset::write_bytes(std::int64_t begin, std::int64_t count, std::int64_t type, std::size_t element_bytes,
                                    const unsigned char* data) {
  if (begin < 0 || count < 0 || shape_.empty() || begin > shape_.front() - count)
    throw Error(ErrorKind::internal, fmt::format("{}: entries [{}, {}) written of {}", place_, begin, begin + count,
                                                 shape_.empty() ? 0 : shape_.front()));
  std::vector<hsize_t> start(shape_.size(), 0), extent(shape_.begin(), shape_.end());
  std::int64_t width = 1;
  for (std::size_t d = 1; d < shape_.size(); ++d) width *= shape_[d];
  const std::int64_t width_bytes = std::max<std::int64_t>(1, width * static_cast<std::int64_t>(element_bytes));
  const std::int64_t per_call = std::max<std::int64_t>(1, kTransferBytes / width_bytes);
  const auto get = [&](auto&& call) { return checked_hdf5(ErrorKind::resources, place_, "write it", call); };
  const Hdf5Handle file_space(get([&] { return H5Dget_space(handle_.id()); }), close_quietly<H5Sclose>);
  for (std::int64_t done = 0; done < count; done += per_call) {
    start[0] = static_cast<hsize_t>(begin + done);
    extent[0] = static_cast<hsize_t>(std::min(per_call, count - done));
    get([&] { return H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr); });
    const Hdf5Handle memory_space(
        get([&] { return H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr); }),
        close_quietly<H5Sclose>);
    const std::size_t offset = static_cast<std::size_t>(done * width) * element_bytes;
    get([&] { return H5Dwrite(handle_.id(), type, memory_space.id(), file_space.id(), H5P_DEFAULT, data + offset); });
    require_written(*output_, place_);
  }
}

template <class T>
void Hdf5OutputDataset::write(std::int64_t begin, std::int64_t count, const T* data) {
  if (count > 0) write_bytes(begin, count, native(data), sizeof(T), reinterpret_cast<const unsigned char*>(data));
}

void Hdf5Writer::write_attribute(const std::string& object, const std::string& name, std::int64_t type, const void* value) {
  const auto get = [&](auto&& call) {
    return checked_write(*output_, fmt::format("{}: attribute {} of {}", path_, name, object), call);
  };
  const Hdf5Handle space(get([] { return H5Screate(H5S_SCALAR); }), close_quietly<H5Sclose>);
  const Hdf5Handle attribute(get([&] {
                               return H5Acreate_by_name(handle_.id(), object.c_str(), name.c_str(), type, space.id(),
                                                        H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
                             }),
                             close_quietly<H5Aclose>);
  get([&] { return H5Awrite(attribute.id(), type, value); });
}

void Hdf5Writer::write_attribute(const std::string& object, const std::string& name, const std::string& value) {
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), close_quietly<H5Tclose>);
  H5Tset_size(type.id(), value.size() + 1);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  write_attribute(object, name, type.id(), value.c_str());
  description_.objects[object].attributes[name] = value;
}

template <class T>
void Hdf5Writer::write_attribute(const std::string& object, const std::string& name, T value) {
  write_attribute(object, name, native(&value), &value);
  description_.objects[object].attributes[name] = value;
}

#define SHARDMAT_INSTANTIATE_DATASET(T)                                            \
  template void Hdf5OutputDataset::write<T>(std::int64_t, std::int64_t, const T*); \
  template Hdf5OutputDataset Hdf5Writer::create_dataset<T>(const std::string&, const std::vector<std::int64_t>&);
SHARDMAT_INSTANTIATE_DATASET(std::int32_t)
SHARDMAT_INSTANTIATE_DATASET(std::int64_t)
SHARDMAT_INSTANTIATE_DATASET(std::uint64_t)
SHARDMAT_INSTANTIATE_DATASET(float)
SHARDMAT_INSTANTIATE_DATASET(double)
#undef SHARDMAT_INSTANTIATE_DATASET

template void Hdf5Writer::write_attribute<std::int64_t>(const std::string&, const std::string&, std::int64_t);
template void Hdf5Writer::write_attribute<std::uint64_t>(const std::string&, const std::string&, std::uint64_t);
template void Hdf5Writer::write_attribute<double>(const std::string&, const std::string&, double);

}  // namespace shardmat
