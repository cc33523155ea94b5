#include "partition/hdf5/output_driver.h"

#include <fcntl.h>
#include <hdf5.h>
#include <sys/stat.h>
#include <unistd.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

constexpr const char* kStatusProperty = "shardmat_output_status";

// Space is reserved when a file is created, and data is handed to the disk while more is produced: the final
// flush has little left to do. Together that writes two to four times as fast on ext4, and a full disk shows
// at once.
constexpr std::int64_t kWriteBackBytes = std::int64_t{8} << 20;

/// False with errno set if there is no room; file systems that cannot reserve are left to run full.
bool reserve(int fd, std::int64_t bytes) {
  return bytes == 0 || ::fallocate(fd, 0, 0, bytes) == 0 || errno == EOPNOTSUPP || errno == ENOSYS;
}

/// HDF5 sees the first member only.
struct Output {
  H5FD_t base{};
  Hdf5OutputStatus* status = nullptr;
  int fd = -1;
  haddr_t eoa = 0;
  haddr_t eof = 0;   // of what was written; HDF5 takes a file where this is 0 for a new one
  haddr_t size = 0;  // with what is reserved
  std::int64_t waiting_bytes = 0;
  dev_t device = 0;
  ino_t inode = 0;
};

Output& output_of(H5FD_t* file) { return *reinterpret_cast<Output*>(file); }
const Output& output_of(const H5FD_t* file) { return *reinterpret_cast<const Output*>(file); }

void remember(Hdf5OutputStatus* status) {
  if (status->error == 0) status->error = errno == 0 ? EIO : errno;
}

H5FD_t* open_output(const char* name, unsigned flags, hid_t access_list, haddr_t) {
  Hdf5OutputStatus* status = nullptr;
  if (H5Pget(access_list, kStatusProperty, &status) < 0) return nullptr;
  const int mode = O_CLOEXEC | O_NOFOLLOW | ((flags & H5F_ACC_RDWR) ? O_RDWR : O_RDONLY) |
                   ((flags & H5F_ACC_CREAT) ? O_CREAT : 0) | ((flags & H5F_ACC_TRUNC) ? O_TRUNC : 0) |
                   ((flags & H5F_ACC_EXCL) ? O_EXCL : 0);
  const int fd = ::open(name, mode, 0666);
  const bool creating = flags & H5F_ACC_CREAT;
  struct stat info {};
  if (fd < 0 || (creating && !reserve(fd, status->expected_bytes)) || ::fstat(fd, &info) != 0) {
    if (creating) remember(status);  // HDF5 first tries to open without; that this fails is no news
    if (fd >= 0) ::close(fd);
    return nullptr;
  }
  auto* output = new (std::nothrow) Output;
  if (output == nullptr) {
    ::close(fd);
    return nullptr;
  }
  output->status = status;
  output->fd = fd;
  output->size = static_cast<haddr_t>(info.st_size);
  output->eof = creating ? 0 : output->size;
  output->device = info.st_dev;
  output->inode = info.st_ino;
  return &output->base;
}

herr_t close_output(H5FD_t* file) {
  Output& output = output_of(file);
  if (::close(output.fd) != 0) remember(output.status);
  delete &output;
  return 0;
}

int compare(const H5FD_t* a, const H5FD_t* b) {
  const auto key = [](const H5FD_t* f) { return std::pair(output_of(f).device, output_of(f).inode); };
  return key(a) < key(b) ? -1 : key(b) < key(a) ? 1 : 0;
}

herr_t features(const H5FD_t*, unsigned long* flags) {
  if (flags != nullptr)
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

herr_t read_output(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* buffer) {
  const Output& output = output_of(file);
  auto* to = static_cast<char*>(buffer);
  while (size > 0) {
    const ssize_t got = ::pread(output.fd, to, size, static_cast<off_t>(address));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) {
      std::memset(to, 0, size);
      break;
    }
    to += got, address += static_cast<haddr_t>(got), size -= static_cast<size_t>(got);
  }
  return 0;
}

herr_t write_output(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, const void* buffer) {
  Output& output = output_of(file);
  output.eof = std::max(output.eof, address + size);
  output.size = std::max(output.size, output.eof);
  output.waiting_bytes += static_cast<std::int64_t>(size);
  const auto* from = static_cast<const char*>(buffer);
  while (size > 0 && output.status->error == 0) {
    const ssize_t put = ::pwrite(output.fd, from, size, static_cast<off_t>(address));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      remember(output.status);
      break;
    }
    from += put, address += static_cast<haddr_t>(put), size -= static_cast<size_t>(put);
  }
  if (output.waiting_bytes >= kWriteBackBytes && output.status->error == 0) {
    ::sync_file_range(output.fd, 0, 0,
                      SYNC_FILE_RANGE_WRITE);  // a hint: the flush at the end reports failures
    output.waiting_bytes = 0;
  }
  return 0;
}

herr_t truncate_output(H5FD_t* file, hid_t, hbool_t) {
  Output& output = output_of(file);
  if (output.eoa != output.size && output.status->error == 0 && ::ftruncate(output.fd, static_cast<off_t>(output.eoa)) != 0)
    remember(output.status);
  output.eof = output.size = output.eoa;
  return 0;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = 511;  // of the range that HDF5 leaves to drivers that are not registered with it
#endif
  driver.name = "shardmat_output";
  driver.maxaddr = static_cast<haddr_t>(INT64_MAX);
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = open_output;
  driver.close = close_output;
  driver.cmp = compare;
  driver.query = features;
  driver.get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return output_of(file).eoa; };
  driver.set_eoa = [](H5FD_t* file, H5FD_mem_t, haddr_t address) -> herr_t {
    output_of(file).eoa = address;
    return 0;
  };
  driver.get_eof = [](const H5FD_t* file, H5FD_mem_t) { return output_of(file).eof; };
  driver.read = read_output;
  driver.write = write_output;
  driver.truncate = truncate_output;
  const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(map), std::end(map), driver.fl_map);
  return driver;
}

}  // namespace

void use_output_driver(std::int64_t access_list, Hdf5OutputStatus* status) {
  const H5FD_class_t driver = driver_class();
  const hid_t id = H5FDregister(&driver);  // HDF5 copies it; the list and the file keep it alive
  const bool good = id >= 0 &&
                    H5Pinsert2(access_list, kStatusProperty, sizeof status, &status, nullptr, nullptr, nullptr, nullptr,
                               nullptr, nullptr) >= 0 &&
                    H5Pset_driver(access_list, id, nullptr) >= 0;
  if (id >= 0) H5FDunregister(id);
  if (!good) throw Error(ErrorKind::internal, "HDF5 does not accept the output driver");
}

}  // namespace shardmat
