#include "partition/files/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat {

constexpr std::size_t kBuffer = 1 << 20;

void fail_write(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorKind::resources,
              fmt::format("cannot write {}: {}; make room or choose another place", path.string(), why));
}

namespace {

/// Opens without waiting for ever for the reader of a pipe, which may come a little later. -1 with errno if that fails.
int open_to_write(const std::filesystem::path& path, int flags) {
  constexpr int kMostTries = 200;
  constexpr std::chrono::milliseconds kPause{50};
  for (int i = 0; i < kMostTries; ++i) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | flags);
    if (descriptor >= 0) {
      ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
      return descriptor;
    }
    if (errno != ENXIO) return -1;
    std::this_thread::sleep_for(kPause);
  }
  errno = ENXIO;
  return -1;
}

}  // namespace

OutputFile::OutputFile(const AtomicFile& file)
    : path_(file.path()), descriptor_(open_to_write(file.temporary(), file.open_flags())) {
  if (descriptor_ < 0)
    fail_write(path_, errno == ENXIO ? "no program reads this pipe; start its reader first" : std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::append(std::string_view bytes) {
  if (bytes.size() >= kBuffer) {
    flush();
    return write(bytes);
  }
  buffer_.append(bytes);
  if (buffer_.size() >= kBuffer) flush();
}

void OutputFile::close() {
  flush();
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_write(path_, std::strerror(errno));
}

void OutputFile::write(std::string_view bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno != EINTR) fail_write(path_, std::strerror(errno));
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

void OutputFile::flush() {
  write(buffer_);
  buffer_.clear();
}

}  // namespace shardmat
