#include "partition/files/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "partition/files/missing_file.h"

namespace shardmat {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", path.string(), what));
}

[[noreturn]] void fail_changed(const std::filesystem::path& path) {
  fail(path, "the file was changed while it was read; read it again when its writer is done");
}

/// Unsigned, as times of far years wrap round.
std::int64_t change_time_ns(const struct stat& status) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
                                   static_cast<std::uint64_t>(status.st_mtim.tv_nsec));
}

const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a FIFO (a pipe)";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "a special file";
}

[[noreturn]] void fail_kind(const std::filesystem::path& path, mode_t mode) {
  if (S_ISDIR(mode)) fail(path, "it is a directory; give a file");
  fail(path, fmt::format("it is {}, not a regular file; write its data to a file first", kind_of(mode)));
}

}  // namespace

int open_regular_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const int error = errno;
  struct stat status {};
  if (descriptor < 0) {
    if (error == ENOENT) fail_missing(path);
    // Opening a socket fails, and so does opening what may not be read; only the status tells what it is.
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) fail_kind(path, status.st_mode);
    fail(path, fmt::format("it cannot be opened: {}", std::strerror(error)));
  }
  const bool known = ::fstat(descriptor, &status) == 0;
  if (known && S_ISREG(status.st_mode)) return descriptor;
  ::close(descriptor);
  if (!known) fail(path, "its status cannot be read");
  fail_kind(path, status.st_mode);
}

InputFile::InputFile(const std::filesystem::path& path) : path_(path), descriptor_(open_regular_file(path)) {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    ::close(descriptor_);
    fail(path, "its status cannot be read");
  }
  size_ = status.st_size;
  changed_ns_ = change_time_ns(status);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(void* to, std::int64_t offset, std::int64_t size) const {
  char* out = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::pread(descriptor_, out, static_cast<std::size_t>(size), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, fmt::format("it cannot be read near byte {}: {}", offset, std::strerror(errno)));
    if (got == 0) fail_changed(path_);
    out += got;
    offset += got;
    size -= got;
  }
}

std::string InputFile::read_all(std::int64_t most, const char* what) const {
  if (size_ > most)
    fail(path_, fmt::format("it has {}, but {} has at most {}; check that it is the right file",
                            human_bytes(static_cast<double>(size_)), what, human_bytes(static_cast<double>(most))));
  std::string bytes(static_cast<std::size_t>(size_), '\0');
  read(bytes.data(), 0, size_);
  return bytes;
}

void InputFile::will_need(std::int64_t begin, std::int64_t size) const {
  if (begin < size_) ::posix_fadvise(descriptor_, begin, size, POSIX_FADV_WILLNEED);  // advice: failing does no harm
}

void InputFile::require_unchanged() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || status.st_size != size_ || change_time_ns(status) != changed_ns_)
    fail_changed(path_);
}

}  // namespace shardmat
