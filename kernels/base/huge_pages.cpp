#include "kernels/base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <limits>

namespace shardmat {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

void* allocate_pages(std::size_t& bytes, std::size_t alignment) {
  if (bytes > std::numeric_limits<std::size_t>::max() - 2 * kHugePage) return nullptr;
  if (bytes < kLeastBytesOfHugePages) {
    bytes = (bytes + alignment - 1) / alignment * alignment;
    return std::aligned_alloc(alignment, bytes);
  }
  bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* const mapped = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  // What lies before and behind whole huge pages goes back.
  auto* const first = static_cast<char*>(mapped);
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(first) % kHugePage) % kHugePage;
  if (before > 0) munmap(first, before);
  if (before < kHugePage) munmap(first + before + bytes, kHugePage - before);
  madvise(first + before, bytes, MADV_HUGEPAGE);  // a hint: nothing is lost without
  return first + before;
}

void free_pages(void* memory, std::size_t bytes) noexcept {
  if (bytes < kLeastBytesOfHugePages) std::free(memory);
  else if (memory != nullptr) munmap(memory, bytes);
}

}  // namespace shardmat
