#include "runtime/service/wire/arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat::service {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void fail(std::uint64_t bytes) {
  throw Error(ErrorKind::resources,
              fmt::format("no shared memory of {} bytes for the vectors of requests ({}); choose fewer", bytes,
                          std::strerror(errno)),
              "arena");
}

}  // namespace

Arena::Arena(int descriptor, std::uint64_t bytes) : descriptor_(descriptor), bytes_(bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    close(descriptor);
    fail(bytes);
  }
  data_ = static_cast<std::byte*>(data);
}

Arena Arena::create(std::uint64_t bytes, const char* name) {
  const int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) fail(bytes);
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0 || fcntl(descriptor, F_ADD_SEALS, kSeals) != 0) {
    close(descriptor);
    fail(bytes);
  }
  return Arena(descriptor, bytes);
}

Arena Arena::map(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || (fcntl(descriptor, F_GET_SEALS) & kSeals) != kSeals) {
    close(descriptor);
    throw Error(ErrorKind::internal, "the service did not send its shared memory to this rank");
  }
  return Arena(descriptor, static_cast<std::uint64_t>(status.st_size));
}

Arena::~Arena() {
  if (data_ == nullptr) return;
  munmap(data_, bytes_);
  close_descriptor();
}

void Arena::close_descriptor() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

Arena::Arena(Arena&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}

std::span<std::byte> Arena::at(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset)
    throw Error(ErrorKind::internal, fmt::format("bytes {} to {} + {} are outside the arena", offset, offset, bytes));
  return {data_ + offset, bytes};
}

}  // namespace shardmat::service
