#include "kernels/base/host_vector.h"

#include <algorithm>
#include <memory>

#include "kernels/base/huge_pages.h"
#include "kernels/base/kept_memory.h"

namespace shardmat {
namespace {

constexpr std::size_t kAlignment = 256;
/// While arrays are kept, no large one lies in pages of 4 kB, each of which was seen to take 18 us on a virtual machine:
/// those from kLeastOfOwn on have huge pages of their own, smaller ones share them.
constexpr std::size_t kSharedPages = std::size_t{2} << 20, kLeastOfOwn = std::size_t{512} << 10;

class LargeArrays final : public KeptMemory {
 public:
  static LargeArrays& all() {
    static LargeArrays* const arrays = new LargeArrays;
    return *arrays;
  }

 private:
  std::size_t rounded(std::size_t bytes) const override {
    return keeps() && bytes >= kLeastOfOwn ? std::max(bytes, kLeastBytesOfHugePages) : bytes;
  }

  void* fresh(std::size_t bytes, Block& block) override {
    if (!keeps() || bytes >= kLeastBytesOfHugePages) {
      block.bytes = bytes;
      return allocate_pages(block.bytes, kAlignment);
    }
    block.bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (!shared_ || block.bytes > kSharedPages - shared_used_) {
      std::size_t all = kSharedPages;
      void* const pages = allocate_pages(all, kAlignment);
      if (pages == nullptr) return nullptr;
      shared_ = std::shared_ptr<char>(static_cast<char*>(pages), [all](char* p) { free_pages(p, all); });
      shared_used_ = 0;
    }
    block.part_of = shared_;
    void* const memory = shared_.get() + shared_used_;
    shared_used_ += block.bytes;
    return memory;
  }

  void release(void* memory, Block& block) noexcept override {
    if (!block.part_of) free_pages(memory, block.bytes);
    block.part_of.reset();
  }

  void stop_keeping() noexcept override { shared_.reset(); }

  std::shared_ptr<char> shared_;  ///< pages that are not full
  std::size_t shared_used_ = 0;
};

}  // namespace

void* allocate_host_array(std::size_t bytes) {
  if (bytes < kLargeHostArray) return ::operator new(bytes);
  void* const memory = LargeArrays::all().allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void free_host_array(void* memory, std::size_t bytes) noexcept {
  if (bytes < kLargeHostArray) ::operator delete(memory);
  else LargeArrays::all().free(memory);
}

}  // namespace shardmat
