#include "kernels/base/host_vector.h"

#include <sys/mman.h>

#include <cstdlib>

namespace shardmat {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20, kLargeBytes = 8 * kHugePageBytes;

}  // namespace

void* allocate_host_array(std::size_t bytes) {
  if (bytes < kLargeBytes) return ::operator new(bytes);
  if (bytes > std::numeric_limits<std::size_t>::max() - kHugePageBytes) throw std::bad_alloc();
  const std::size_t whole_pages = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  void* const memory = std::aligned_alloc(kHugePageBytes, whole_pages);
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, whole_pages, MADV_HUGEPAGE);  // a hint: nothing is lost where the system has none
  return memory;
}

void free_host_array(void* memory, std::size_t bytes) noexcept {
  if (bytes < kLargeBytes) ::operator delete(memory);
  else std::free(memory);
}

}  // namespace shardmat
