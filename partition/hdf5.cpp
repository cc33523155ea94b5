#include "partition/hdf5.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "kernels/base/error.h"
#include "partition/missing_file.h"
#include "partition/output_file.h"

namespace shardmat {
namespace {

static_assert(std::is_same_v<hid_t, std::int64_t>, "HDF5 1.10 or newer");

/// For good, not for the length of a call: after it has met damaged metadata HDF5 has more to print when the
/// process exits.
void silence_hdf5() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

/// HDF5's innermost reason: the system's message where an errno is in the error stack, else the deepest
/// description.
std::string reason() {
  std::vector<std::string> descriptions;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* list) -> herr_t {
        if (error->desc != nullptr) static_cast<std::vector<std::string>*>(list)->emplace_back(error->desc);
        return 0;
      },
      &descriptions);
  for (const std::string& text : descriptions)
    if (const auto at = text.find("errno = "); at != std::string::npos)
      if (const int code = std::atoi(text.c_str() + at + 8); code != 0) return std::strerror(code);
  return descriptions.empty() ? "HDF5 gives no reason" : "HDF5: " + descriptions.front();
}

/// The result of an HDF5 call, or an Error "PLACE: cannot DO: REASON".
template <class Call>
auto checked(ErrorKind kind, const std::string& place, const char* what, Call&& call) {
  silence_hdf5();
  const auto result = call();
  if (result < 0) throw Error(kind, fmt::format("{}: cannot {}: {}", place, what, reason()));
  return result;
}

void require_written(const Hdf5OutputStatus& output, const std::string& place) {
  if (output.error != 0) fail_write(place, std::strerror(output.error));
}

/// The result of a call that writes, or an Error with the system's reason why it cannot.
template <class Call>
auto checked_write(const Hdf5OutputStatus& output, const std::string& place, Call&& call) {
  silence_hdf5();
  const auto result = call();
  require_written(output, place);
  return checked(ErrorKind::resources, place, "write it", [&] { return result; });
}

template <herr_t (*close)(hid_t)>
int close_quietly(std::int64_t id) {
  silence_hdf5();
  return close(id);
}

// Native types double as stored types: little-endian on every machine this builds for.
hid_t native(const std::int32_t*) { return H5T_NATIVE_INT32; }
hid_t native(const std::int64_t*) { return H5T_NATIVE_INT64; }
hid_t native(const std::uint64_t*) { return H5T_NATIVE_UINT64; }
hid_t native(const float*) { return H5T_NATIVE_FLOAT; }
hid_t native(const double*) { return H5T_NATIVE_DOUBLE; }

Hdf5Type type_of(hid_t type) {
  const auto is = [&](hid_t other) { return H5Tequal(type, other) > 0; };
  if (is(H5T_NATIVE_INT32)) return Hdf5Type::i32;
  if (is(H5T_NATIVE_INT64)) return Hdf5Type::i64;
  if (is(H5T_NATIVE_UINT64)) return Hdf5Type::u64;
  if (is(H5T_NATIVE_FLOAT)) return Hdf5Type::f32;
  if (is(H5T_NATIVE_DOUBLE)) return Hdf5Type::f64;
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return Hdf5Type::other_integer;
    case H5T_FLOAT:
      return Hdf5Type::other_float;
    default:
      return Hdf5Type::other;
  }
}

Hdf5Handle property_list(hid_t kind) {
  return {checked(ErrorKind::internal, "HDF5", "make a property list", [&] { return H5Pcreate(kind); }),
          close_quietly<H5Pclose>};
}

/// Locks fail on read-only and some network file systems, and our files never change once they have their
/// name.
Hdf5Handle access_list() {
  Hdf5Handle list = property_list(H5P_FILE_ACCESS);
  checked(ErrorKind::internal, "HDF5", "switch off file locking",
          [&] { return H5Pset_file_locking(list.id(), false, true); });
  return list;
}

void require_readable_file(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) fail_missing(path);
  if (std::filesystem::is_directory(status))
    throw Error(ErrorKind::input, fmt::format("{}: is a directory, not an HDF5 file", path.string()));
}

hid_t open_for_reading(const std::string& path, const Hdf5Handle& access) {
  silence_hdf5();
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id());
  if (file < 0)
    throw Error(ErrorKind::input, fmt::format("{}: cannot open it as an HDF5 file: {}. If it was one, it is damaged or was "
                                              "cut off: copy or make it again",
                                              path, reason()));
  return file;
}

std::string place_of(const std::string& file, const std::string& object, const std::string& attribute) {
  return fmt::format("{}: attribute {} of {}", file, attribute, object);
}

}  // namespace

Hdf5Handle::Hdf5Handle(Hdf5Handle&& other) noexcept
    : id_(std::exchange(other.id_, -1)), close_(std::exchange(other.close_, nullptr)) {}

Hdf5Handle& Hdf5Handle::operator=(Hdf5Handle&& other) noexcept {
  if (this != &other) {
    reset();
    id_ = std::exchange(other.id_, -1);
    close_ = std::exchange(other.close_, nullptr);
  }
  return *this;
}

bool Hdf5Handle::reset() noexcept {
  const std::int64_t id = std::exchange(id_, -1);
  return id < 0 || close_(id) >= 0;
}

Hdf5File Hdf5File::open(const std::filesystem::path& path) {
  require_readable_file(path);
  Hdf5File file;
  file.path_ = path.string();
  file.handle_ = Hdf5Handle(open_for_reading(file.path_, access_list()), close_quietly<H5Fclose>);
  return file;
}

#ifdef H5_HAVE_PARALLEL
bool Hdf5File::parallel_available() { return true; }

Hdf5File Hdf5File::open_parallel(const std::filesystem::path& path, MPI_Comm communicator) {
  const Hdf5Handle access = property_list(H5P_FILE_ACCESS);
  checked(ErrorKind::internal, path.string(), "use MPI-IO",
          [&] { return H5Pset_fapl_mpio(access.id(), communicator, MPI_INFO_NULL); });
  Hdf5File file;
  file.path_ = path.string();
  file.handle_ = Hdf5Handle(open_for_reading(file.path_, access), close_quietly<H5Fclose>);
  return file;
}
#else
bool Hdf5File::parallel_available() { return false; }

Hdf5File Hdf5File::open_parallel(const std::filesystem::path& path, MPI_Comm) {
  throw Error(ErrorKind::usage, fmt::format("{}: parallel access was asked for, but this program was built with a serial "
                                            "HDF5 library; use serial access, or build with a parallel one "
                                            "(package libhdf5-openmpi-dev)",
                                            path.string()));
}
#endif

Hdf5File Hdf5File::create(const std::filesystem::path& written, const std::filesystem::path& path,
                          std::int64_t expected_bytes) {
  const Hdf5Handle access = access_list();
  Hdf5File file;
  file.path_ = path.string();
  // The format of HDF5 1.8 has checksums on all its metadata and is read by everything in use.
  checked(ErrorKind::internal, file.path_, "choose the HDF5 format",
          [&] { return H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_V18); });
  file.output_ = std::make_unique<Hdf5OutputStatus>();
  file.output_->expected_bytes = expected_bytes;
  use_output_driver(access.id(), file.output_.get());
  file.handle_ =
      Hdf5Handle(checked_write(*file.output_, file.path_,
                               [&] { return H5Fcreate(written.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()); }),
                 close_quietly<H5Fclose>);
  return file;
}

void Hdf5File::close() {
  checked_write(*output_, path_, [&] { return H5Fflush(handle_.id(), H5F_SCOPE_LOCAL); });
  const bool closed = handle_.reset();
  require_written(*output_, path_);
  if (!closed) throw Error(ErrorKind::internal, fmt::format("{}: HDF5 cannot close it", path_));
}

bool Hdf5File::has(const std::string& name) const {
  // H5Lexists asks for one link and fails if a group before it is missing.
  for (std::size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    const std::string prefix = name.substr(0, end);
    const auto found = checked(ErrorKind::input, path_, "look into it",
                               [&] { return H5Lexists(handle_.id(), prefix.c_str(), H5P_DEFAULT); });
    if (found == 0) return false;
    if (end == std::string::npos) return true;
  }
}

std::vector<std::string> Hdf5File::children(const std::string& group) const {
  std::vector<std::string> names;
  checked(ErrorKind::input, fmt::format("{}: group {}", path_, group), "list it", [&] {
    return H5Literate_by_name(
        handle_.id(), group.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
        [](hid_t, const char* name, const H5L_info_t*, void* list) -> herr_t {
          static_cast<std::vector<std::string>*>(list)->emplace_back(name);
          return 0;
        },
        &names, H5P_DEFAULT);
  });
  return names;
}

Hdf5Dataset Hdf5File::dataset(const std::string& name) const {
  Hdf5Dataset result;
  result.place_ = fmt::format("{}: dataset {}", path_, name);
  if (!has(name)) throw Error(ErrorKind::input, fmt::format("{} is missing", result.place_));
  const auto get = [&](const char* what, auto&& call) { return checked(ErrorKind::input, result.place_, what, call); };
  result.handle_ =
      Hdf5Handle(get("open it", [&] { return H5Dopen2(handle_.id(), name.c_str(), H5P_DEFAULT); }), close_quietly<H5Dclose>);
  const Hdf5Handle type(get("read its type", [&] { return H5Dget_type(result.handle_.id()); }), close_quietly<H5Tclose>);
  result.type_ = type_of(type.id());
  result.stored_bytes_ = H5Tget_size(type.id());
  const Hdf5Handle space(get("read its shape", [&] { return H5Dget_space(result.handle_.id()); }), close_quietly<H5Sclose>);
  std::vector<hsize_t> dims(
      static_cast<std::size_t>(get("read its shape", [&] { return H5Sget_simple_extent_ndims(space.id()); })));
  get("read its shape", [&] { return H5Sget_simple_extent_dims(space.id(), dims.data(), nullptr); });
  result.shape_.assign(dims.begin(), dims.end());
  return result;
}

void Hdf5File::create_group(const std::string& name) {
  // Attributes stay in the group's header: a heap of their own, from nine on, would cost kilobytes for each
  // partition.
  const Hdf5Handle list = property_list(H5P_GROUP_CREATE);
  const auto get = [&](auto&& call) { return checked_write(*output_, fmt::format("{}: group {}", path_, name), call); };
  get([&] { return H5Pset_attr_phase_change(list.id(), 255, 0); });
  const Hdf5Handle group(get([&] { return H5Gcreate2(handle_.id(), name.c_str(), H5P_DEFAULT, list.id(), H5P_DEFAULT); }),
                         close_quietly<H5Gclose>);
}

template <class T>
Hdf5Dataset Hdf5File::create_dataset(const std::string& name, const std::vector<std::int64_t>& shape) {
  Hdf5Dataset result;
  result.place_ = fmt::format("{}: dataset {}", path_, name);
  result.shape_ = shape;
  const hid_t type = native(static_cast<T*>(nullptr));
  result.type_ = type_of(type);
  result.stored_bytes_ = sizeof(T);
  result.output_ = output_.get();
  const auto get = [&](auto&& call) { return checked_write(*output_, result.place_, call); };
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  const Hdf5Handle space(get([&] { return H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr); }),
                         close_quietly<H5Sclose>);
  const Hdf5Handle list = property_list(H5P_DATASET_CREATE);
  get([&] { return H5Pset_fill_time(list.id(), H5D_FILL_TIME_NEVER); });
  result.handle_ = Hdf5Handle(
      get([&] { return H5Dcreate2(handle_.id(), name.c_str(), type, space.id(), H5P_DEFAULT, list.id(), H5P_DEFAULT); }),
      close_quietly<H5Dclose>);
  return result;
}

void Hdf5Dataset::transfer(std::int64_t begin, std::int64_t count, std::int64_t memory_type, std::size_t element_bytes,
                           unsigned char* read_to, const unsigned char* write_from) const {
  const bool reading = read_to != nullptr;
  const ErrorKind kind = reading ? ErrorKind::input : ErrorKind::resources;
  if (begin < 0 || count < 0 || begin > size() - count)
    throw Error(ErrorKind::internal,
                fmt::format("{}: entries [{}, {}) of {} asked for", place_, begin, begin + count, size()));
  std::vector<hsize_t> start(std::max<std::size_t>(1, shape_.size()), 0), extent(start.size(), 1);
  std::int64_t width = 1;
  for (std::size_t d = 1; d < shape_.size(); ++d) extent[d] = static_cast<hsize_t>(shape_[d]), width *= shape_[d];
  const auto width_bytes = width * static_cast<std::int64_t>(std::max(element_bytes, stored_bytes_));
  const std::int64_t per_call = std::max<std::int64_t>(1, kHdf5TransferBytes / std::max<std::int64_t>(1, width_bytes));
  const auto get = [&](auto&& call) { return checked(kind, place_, reading ? "read it" : "write it", call); };
  const Hdf5Handle file_space(get([&] { return H5Dget_space(handle_.id()); }), close_quietly<H5Sclose>);
  for (std::int64_t done = 0; done < count; done += per_call) {
    start[0] = static_cast<hsize_t>(begin + done);
    extent[0] = static_cast<hsize_t>(std::min(per_call, count - done));
    if (!shape_.empty())
      get([&] {
        return H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr);
      });
    const Hdf5Handle memory_space(
        get([&] { return H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr); }),
        close_quietly<H5Sclose>);
    const std::size_t offset = static_cast<std::size_t>(done * width) * element_bytes;
    get([&] {
      return reading
                 ? H5Dread(handle_.id(), memory_type, memory_space.id(), file_space.id(), H5P_DEFAULT, read_to + offset)
                 : H5Dwrite(handle_.id(), memory_type, memory_space.id(), file_space.id(), H5P_DEFAULT, write_from + offset);
    });
    if (output_ != nullptr) require_written(*output_, place_);
  }
}

template <class T>
void Hdf5Dataset::read(std::int64_t begin, std::int64_t count, T* out) const {
  if (type_ == Hdf5Type::other) throw Error(ErrorKind::input, fmt::format("{} does not hold numbers", place_));
  if (count > 0) transfer(begin, count, native(out), sizeof(T), reinterpret_cast<unsigned char*>(out), nullptr);
}

template <class T>
void Hdf5Dataset::write(std::int64_t begin, std::int64_t count, const T* data) {
  if (count > 0) transfer(begin, count, native(data), sizeof(T), nullptr, reinterpret_cast<const unsigned char*>(data));
}

bool Hdf5File::has_attribute(const std::string& object, const std::string& name) const {
  return checked(ErrorKind::input, place_of(path_, object, name), "look for it",
                 [&] { return H5Aexists_by_name(handle_.id(), object.c_str(), name.c_str(), H5P_DEFAULT); }) > 0;
}

namespace {

struct OpenAttribute {
  OpenAttribute(hid_t file, const std::string& path, const std::string& object, const std::string& name)
      : place(place_of(path, object, name)),
        handle(checked(ErrorKind::input, place, "read it",
                       [&] { return H5Aopen_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT); }),
               close_quietly<H5Aclose>),
        type(checked(ErrorKind::input, place, "read its type", [&] { return H5Aget_type(handle.id()); }),
             close_quietly<H5Tclose>) {
    const Hdf5Handle space(checked(ErrorKind::input, place, "read its shape", [&] { return H5Aget_space(handle.id()); }),
                           close_quietly<H5Sclose>);
    if (H5Sget_simple_extent_npoints(space.id()) != 1)
      throw Error(ErrorKind::input, fmt::format("{} must be one value", place));
  }

  std::string place;
  Hdf5Handle handle, type;
};

}  // namespace

std::string Hdf5File::string_attribute(const std::string& object, const std::string& name) const {
  const OpenAttribute attribute(handle_.id(), path_, object, name);
  const auto get = [&](auto&& call) { checked(ErrorKind::input, attribute.place, "read it", call); };
  if (H5Tget_class(attribute.type.id()) != H5T_STRING)
    throw Error(ErrorKind::input, fmt::format("{} must be a string", attribute.place));
  if (H5Tis_variable_str(attribute.type.id()) > 0) {
    char* text = nullptr;
    get([&] { return H5Aread(attribute.handle.id(), attribute.type.id(), static_cast<void*>(&text)); });
    const std::string result = text == nullptr ? "" : text;
    H5free_memory(text);
    return result;
  }
  std::string text(H5Tget_size(attribute.type.id()), '\0');
  get([&] { return H5Aread(attribute.handle.id(), attribute.type.id(), text.data()); });
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

template <class T>
T Hdf5File::attribute(const std::string& object, const std::string& name) const {
  const OpenAttribute attribute(handle_.id(), path_, object, name);
  if (type_of(attribute.type.id()) == Hdf5Type::other)
    throw Error(ErrorKind::input, fmt::format("{} must be a number", attribute.place));
  T value{};
  checked(ErrorKind::input, attribute.place, "read it",
          [&] { return H5Aread(attribute.handle.id(), native(&value), &value); });
  return value;
}

void Hdf5File::write_attribute(const std::string& object, const std::string& name, std::int64_t type, const void* value) {
  const std::string place = place_of(path_, object, name);
  const auto get = [&](auto&& call) { return checked_write(*output_, place, call); };
  const Hdf5Handle space(get([] { return H5Screate(H5S_SCALAR); }), close_quietly<H5Sclose>);
  const Hdf5Handle attribute(get([&] {
                               return H5Acreate_by_name(handle_.id(), object.c_str(), name.c_str(), type, space.id(),
                                                        H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
                             }),
                             close_quietly<H5Aclose>);
  get([&] { return H5Awrite(attribute.id(), type, value); });
}

void Hdf5File::write_attribute(const std::string& object, const std::string& name, const std::string& value) {
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), close_quietly<H5Tclose>);
  H5Tset_size(type.id(), value.size() + 1);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  write_attribute(object, name, type.id(), value.c_str());
}

template <class T>
void Hdf5File::write_attribute(const std::string& object, const std::string& name, T value) {
  write_attribute(object, name, native(&value), &value);
}

#define SHARDMAT_INSTANTIATE_DATASET(T)                                      \
  template void Hdf5Dataset::read<T>(std::int64_t, std::int64_t, T*) const;  \
  template void Hdf5Dataset::write<T>(std::int64_t, std::int64_t, const T*); \
  template Hdf5Dataset Hdf5File::create_dataset<T>(const std::string&, const std::vector<std::int64_t>&);
SHARDMAT_INSTANTIATE_DATASET(std::int32_t)
SHARDMAT_INSTANTIATE_DATASET(std::int64_t)
SHARDMAT_INSTANTIATE_DATASET(std::uint64_t)
SHARDMAT_INSTANTIATE_DATASET(float)
SHARDMAT_INSTANTIATE_DATASET(double)
#undef SHARDMAT_INSTANTIATE_DATASET

template std::int64_t Hdf5File::attribute<std::int64_t>(const std::string&, const std::string&) const;
template std::uint64_t Hdf5File::attribute<std::uint64_t>(const std::string&, const std::string&) const;
template double Hdf5File::attribute<double>(const std::string&, const std::string&) const;
template void Hdf5File::write_attribute<std::int64_t>(const std::string&, const std::string&, std::int64_t);
template void Hdf5File::write_attribute<std::uint64_t>(const std::string&, const std::string&, std::uint64_t);
template void Hdf5File::write_attribute<double>(const std::string&, const std::string&, double);

}  // namespace shardmat
