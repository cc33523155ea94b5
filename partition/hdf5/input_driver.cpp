#include "partition/hdf5/input_driver.h"

#include <hdf5.h>
#include <sys/stat.h>
#include <unistd.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

constexpr const char* kFileProperty = "shardmat_input_file";

/// HDF5 sees the first member only.
struct Input {
  H5FD_t base{};
  Hdf5InputFile* file = nullptr;
  haddr_t eoa = 0;
  haddr_t size = 0;
};

Input& input_of(H5FD_t* file) { return *reinterpret_cast<Input*>(file); }
const Input& input_of(const H5FD_t* file) { return *reinterpret_cast<const Input*>(file); }

H5FD_t* open_input(const char*, unsigned, hid_t access_list, haddr_t) {
  Hdf5InputFile* file = nullptr;
  struct stat status {};
  if (H5Pget(access_list, kFileProperty, &file) < 0 || ::fstat(file->descriptor, &status) != 0) return nullptr;
  auto* input = new (std::nothrow) Input;
  if (input == nullptr) return nullptr;
  input->file = file;
  input->size = static_cast<haddr_t>(status.st_size);
  return &input->base;
}

herr_t read_input(H5FD_t* base, H5FD_mem_t kind, hid_t, haddr_t address, size_t size, void* buffer) {
  const Input& input = input_of(base);
  if (input.file->tracing && kind == H5FD_MEM_DRAW) {
    input.file->traced = static_cast<std::int64_t>(address);
    return 0;
  }
  auto* to = static_cast<char*>(buffer);
  while (size > 0) {
    const ssize_t got = ::pread(input.file->descriptor, to, size, static_cast<off_t>(address));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return -1;
    to += got, address += static_cast<haddr_t>(got), size -= static_cast<size_t>(got);
  }
  return 0;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = 510;  // of the range that HDF5 leaves to drivers that are not registered with it
#endif
  driver.name = "shardmat_input";
  driver.maxaddr = static_cast<haddr_t>(INT64_MAX);
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = open_input;
  driver.close = [](H5FD_t* file) -> herr_t {
    delete &input_of(file);
    return 0;
  };
  driver.query = [](const H5FD_t*, unsigned long* flags) -> herr_t {
    if (flags != nullptr) *flags = H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
  };
  driver.get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return input_of(file).eoa; };
  driver.set_eoa = [](H5FD_t* file, H5FD_mem_t, haddr_t address) -> herr_t {
    input_of(file).eoa = address;
    return 0;
  };
  driver.get_eof = [](const H5FD_t* file, H5FD_mem_t) { return input_of(file).size; };
  driver.read = read_input;
  driver.write = [](H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) -> herr_t { return -1; };
  const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(map), std::end(map), driver.fl_map);
  return driver;
}

}  // namespace

void use_input_driver(std::int64_t access_list, Hdf5InputFile* file) {
  const H5FD_class_t driver = driver_class();
  const hid_t id = H5FDregister(&driver);  // HDF5 copies it; the list and the file keep it alive
  const bool good = id >= 0 &&
                    H5Pinsert2(access_list, kFileProperty, sizeof file, &file, nullptr, nullptr, nullptr, nullptr, nullptr,
                               nullptr) >= 0 &&
                    H5Pset_driver(access_list, id, nullptr) >= 0;
  if (id >= 0) H5FDunregister(id);
  if (!good) throw Error(ErrorKind::internal, "HDF5 does not accept the input driver");
}

}  // namespace shardmat
