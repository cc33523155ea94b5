#include "partition/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

void flush_to_disk(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool flushed = fd >= 0 && ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!flushed)
    throw Error(ErrorKind::resources, fmt::format("cannot flush {} to disk: {}", path.string(), std::strerror(error)));
}

}  // namespace

void check_writable(const std::filesystem::path& path) {
  if (!path.has_filename())
    throw Error(ErrorKind::input, fmt::format("cannot write \"{}\": the name of the file is missing", path.string()));
  const std::filesystem::path directory = directory_of(path);
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored))
    throw Error(ErrorKind::input, fmt::format("cannot write {}: there is no directory {}; create it first", path.string(),
                                              directory.string()));
  if (std::filesystem::is_directory(path, ignored))
    throw Error(ErrorKind::input, fmt::format("cannot write {}: it is a directory; give a file name", path.string()));
  if (::access(directory.c_str(), W_OK) != 0)
    throw Error(ErrorKind::resources,
                fmt::format("cannot write {}: {}: {}", path.string(), directory.string(), std::strerror(errno)));
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path) {
  check_writable(path);
  temporary_ = directory_of(path) / fmt::format(".{}.{}.tmp", path.filename().string(), ::getpid());
}

AtomicFile::~AtomicFile() {
  std::error_code ignored;
  if (!committed_) std::filesystem::remove(temporary_, ignored);
}

void AtomicFile::commit() {
  flush_to_disk(temporary_);
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error)
    throw Error(ErrorKind::resources,
                fmt::format("cannot rename {} to {}: {}", temporary_.string(), path_.string(), error.message()));
  committed_ = true;
  flush_to_disk(directory_of(path_));
}

}  // namespace shardmat
