#include "runtime/service/wire/library.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "kernels/base/error.h"

namespace shardmat::service {
namespace {

int open_beneath(int directory, const char* name) {
  open_how how{};
  how.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, directory, name, &how, sizeof how));
}

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", name, why), "source");
}

}  // namespace

Library::Library(const std::filesystem::path& directory)
    : directory_(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (directory_ < 0)
    throw Error(
        ErrorKind::input,
        fmt::format("{}: {}; name the directory that has the matrix files", directory.string(), std::strerror(errno)),
        "library");
  const int here = open_beneath(directory_, ".");
  if (here >= 0) {
    ::close(here);
    return;
  }
  const int error = errno;
  ::close(directory_);
  if (error == ENOSYS || error == EPERM)
    throw Error(
        ErrorKind::resources,
        "this kernel, or the container's seccomp profile, has no openat2 (Linux 5.6), without which a matrix could be "
        "read from outside the library");
  throw Error(ErrorKind::input, fmt::format("{}: {}", directory.string(), std::strerror(error)), "library");
}

Library::~Library() { ::close(directory_); }

int Library::open(const std::string& name) const {
  if (name.empty() || name.find('\0') != std::string::npos) refuse("the source", "this is no name of a file in the library");
  const int descriptor = open_beneath(directory_, name.c_str());
  if (descriptor < 0) {
    const bool leaves = errno == EXDEV || errno == ELOOP;
    refuse(name, leaves            ? "the path leaves the library; name a file inside"
                 : errno == ENOENT ? "there is no such file in the library"
                                   : std::strerror(errno));
  }
  struct stat status {};
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) return descriptor;
  ::close(descriptor);
  refuse(name, "this is not a regular file; name a matrix file");
}

LibraryFile::LibraryFile(const Library& library, const std::string& name, const std::filesystem::path& directory)
    : descriptor_(library.open(name)), path_(directory / std::filesystem::path(name).filename()) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::filesystem::remove(path_, error);
  std::filesystem::create_symlink(fmt::format("/proc/{}/fd/{}", getpid(), descriptor_), path_, error);
  if (!error) return;
  ::close(descriptor_);
  throw Error(ErrorKind::resources, fmt::format("{}: {}", path_.string(), error.message()));
}

LibraryFile::~LibraryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  ::close(descriptor_);
}

}  // namespace shardmat::service
