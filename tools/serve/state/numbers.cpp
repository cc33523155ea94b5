#include "tools/serve/state/numbers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "kernels/base/error.h"

namespace shardmat::serve {
namespace {

constexpr std::uint64_t kAtATime = 1000;

}  // namespace

Numbers::Numbers(const std::filesystem::path& file) : file_(file) {
  if (!std::filesystem::exists(file)) return;
  std::ifstream stream(file);
  if (!(stream >> first_) || first_ == 0)
    throw Error(ErrorKind::input,
                fmt::format("{}: this is not what the service wrote; write a number into it that is larger than every "
                            "generation and vector so far",
                            file.string()));
  next_ = reserved_ = first_;
}

std::uint64_t Numbers::next() {
  if (next_ == reserved_) reserve();
  return next_++;
}

void Numbers::reserve() {
  const std::filesystem::path temporary = file_.string() + ".tmp";
  const std::string text = std::to_string(reserved_ + kAtATime) + "\n";
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written = descriptor >= 0 && write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       fsync(descriptor) == 0;
  std::error_code error(written ? 0 : errno, std::generic_category());
  if (descriptor >= 0) close(descriptor);
  if (written) std::filesystem::rename(temporary, file_, error);
  if (error)
    throw Error(ErrorKind::resources,
                fmt::format("{}: {}; make room on the disk of the state directory", file_.string(), error.message()),
                "state");
  reserved_ += kAtATime;
}

}  // namespace shardmat::serve
