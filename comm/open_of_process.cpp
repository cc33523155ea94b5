#include "comm/open_of_process.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "kernels/base/error.h"

namespace shardmat {

int open_of_process(std::int32_t process, int descriptor) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
  const int opened = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (opened >= 0) return opened;
  const int error = errno;
  throw Error(ErrorKind::resources,
              fmt::format("memory that process {} of this host shares cannot be opened ({}): {}. Ranks that share memory "
                          "must be of the same user and in the same container",
                          process, path, std::strerror(error)));
}

}  // namespace shardmat
