#include "tools/client/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/base/error.h"

namespace shardmat::tools {

MappedFile::MappedFile(const std::string& name) {
  const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status {};
  const bool regular = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  int why = file < 0 ? errno : EINVAL;
  if (regular && status.st_size > 0) {
    bytes_ = static_cast<std::size_t>(status.st_size);
    map_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    why = map_ == MAP_FAILED ? errno : 0;
  }
  if (file >= 0) close(file);
  if (why != 0)
    throw Error(ErrorKind::input,
                fmt::format("{}: {}", name, why == EINVAL ? "this is no file with bytes" : std::strerror(why)));
}

MappedFile::~MappedFile() { munmap(map_, bytes_); }

}  // namespace shardmat::tools
