#include "partition/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat {

constexpr std::size_t kBuffer = 1 << 20;

void fail_write(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorKind::resources,
              fmt::format("cannot write {}: {}; make room or choose another place", path.string(), why));
}

OutputFile::OutputFile(const AtomicFile& file)
    : path_(file.path()), descriptor_(::open(file.temporary().c_str(), O_WRONLY | file.open_flags())) {
  if (descriptor_ < 0) fail_write(path_, std::strerror(errno));
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
