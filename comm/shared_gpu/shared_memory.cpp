#include "comm/shared_gpu/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/open_of_process.h"
#include "comm/shared_gpu/peer_process.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/narrow.h"

namespace shardmat {
namespace {

constexpr std::size_t kPage = std::size_t{64} << 10;  // a multiple of the pages of every machine

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

[[noreturn]] void fail(const std::string& what) {
  const int error = errno;
  throw Error(ErrorKind::resources, fmt::format("{}: {}", what, std::strerror(error)));
}

/// 0, or why the file has no memory there.
int take_memory(int descriptor, std::size_t begin, std::size_t bytes) {
  int error = 0;
  do error = posix_fallocate(descriptor, narrow<off_t>(begin, "bytes"), narrow<off_t>(bytes, "bytes"));
  while (error == EINTR);
  return error;
}

}  // namespace

SharedMemory::SharedMemory(std::size_t head_bytes) : descriptor_(memfd_create("shardmat", MFD_CLOEXEC)) {
  if (descriptor_ < 0) fail("memory that the ranks of a host share cannot be made");
  try {
    head_bytes_ = whole_pages(head_bytes);
    errno = take_memory(descriptor_, 0, head_bytes_);
    if (errno != 0) fail("there is no memory for what the ranks of a host share");
    map_head(head_bytes_);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

SharedMemory::SharedMemory(std::size_t head_bytes, std::int32_t maker, int descriptor)
    : descriptor_(open_of_process(maker, descriptor)) {
  try {
    map_head(whole_pages(head_bytes));
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

void SharedMemory::map_head(std::size_t head_bytes) {
  head_bytes_ = head_bytes;
  head_ = mmap(nullptr, head_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (head_ == MAP_FAILED) fail("memory that the ranks of a host share cannot be mapped");
}

SharedMemory::~SharedMemory() {
  if (body_ != nullptr) munmap(body_, mapped_);
  munmap(head_, head_bytes_);
  close(descriptor_);
}

void SharedMemory::reserve(std::size_t bytes, const char* what) {
  const std::size_t wanted = whole_pages(bytes);
  if (wanted <= reserved_) return;
  const std::size_t more = wanted - reserved_;
  require_host_memory(narrow<std::int64_t>(more, "bytes"), what);
  errno = take_memory(descriptor_, head_bytes_ + reserved_, more);
  if (errno != 0) fail(fmt::format("there is no shared memory for {} bytes of {}", more, what));
  reserved_ = wanted;
}

void SharedMemory::release() {
  if (reserved_ == 0) return;
  if (fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, narrow<off_t>(head_bytes_, "bytes"),
                narrow<off_t>(reserved_, "bytes")) != 0)
    fail("memory that the ranks of a host share cannot be given back");
  reserved_ = 0;
}

std::byte* SharedMemory::body(std::size_t bytes) {
  const std::size_t wanted = whole_pages(bytes);
  if (wanted <= mapped_) return body_;
  void* const place =
      mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, narrow<off_t>(head_bytes_, "bytes"));
  if (place == MAP_FAILED) fail("memory that the ranks of a host share cannot be mapped");
  if (body_ != nullptr) munmap(body_, mapped_);
  body_ = static_cast<std::byte*>(place);
  mapped_ = wanted;
  return body_;
}

std::unique_ptr<SharedMemory> share_memory(Communicator& communicator, int maker, std::size_t head_bytes,
                                           const std::function<void(void* head)>& prepare) {
  struct Maker {
    PeerProcess process;
    int descriptor;
  };
  std::unique_ptr<SharedMemory> memory;
  communicator.run_agreed([&] {
    if (communicator.rank() != maker) return;
    memory = std::make_unique<SharedMemory>(head_bytes);
    prepare(memory->head());
    *static_cast<PeerProcess*>(memory->head()) = this_process();
  });
  const std::vector<Maker> makers =
      communicator.all_gather(Maker{this_process(), memory == nullptr ? -1 : memory->descriptor()});
  communicator.run_agreed([&] {
    if (communicator.rank() == maker) return;
    const Maker& from = makers[static_cast<std::size_t>(maker)];
    memory = std::make_unique<SharedMemory>(head_bytes, from.process.number, from.descriptor);
    const auto& found = *static_cast<const PeerProcess*>(memory->head());
    if (found.number != from.process.number || found.started != from.process.started)
      throw Error(ErrorKind::resources,
                  fmt::format("process {} of this host is not rank {}, with which memory is to be shared: the ranks run in "
                              "different containers. Start them in one, or do without shared memory: one rank for each "
                              "GPU, another exchange",
                              from.process.number, maker));
  });
  return memory;
}

}  // namespace shardmat
