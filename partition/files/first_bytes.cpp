#include "partition/files/first_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace shardmat {

std::string first_bytes(const std::filesystem::path& path, std::size_t most, std::size_t offset) {
  std::string bytes;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return bytes;
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
    bytes.resize(most);
    std::size_t done = 0;
    while (done < most) {
      const ssize_t got = ::pread(descriptor, bytes.data() + done, most - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    bytes.resize(done);
  }
  ::close(descriptor);
  if (offset == 0 && bytes.starts_with(kByteOrderMark)) return first_bytes(path, most, kByteOrderMark.size());
  return bytes;
}

}  // namespace shardmat
