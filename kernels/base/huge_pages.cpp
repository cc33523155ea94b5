#include "kernels/base/huge_pages.h"

#include <sys/mman.h>

#include <cstdlib>
#include <limits>

namespace shardmat {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

void* allocate_pages(std::size_t& bytes, std::size_t alignment) {
  if (bytes > std::numeric_limits<std::size_t>::max() - kHugePage) return nullptr;
  const bool is_large = bytes >= kLeastBytesOfHugePages;
  if (is_large) alignment = kHugePage;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, bytes);
  if (is_large && memory != nullptr) madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: nothing is lost without
  return memory;
}

}  // namespace shardmat
