#include "kernels/base/host_vector.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "kernels/base/huge_pages.h"
#include "kernels/base/kept_arrays.h"

namespace shardmat {
namespace {

constexpr std::size_t kAlignment = 256;
/// While arrays are kept, no large one lies in pages of 4 kB, each of which was seen to take 18 us on a virtual machine:
/// those from kLeastOfOwn on have huge pages of their own, smaller ones share them.
constexpr std::size_t kSharedPages = std::size_t{2} << 20, kLeastOfOwn = std::size_t{512} << 10;

/// Large arrays: those in use, and freed ones that are kept.
class LargeArrays {
 public:
  static LargeArrays& all() {
    static LargeArrays* const arrays = new LargeArrays;  // never destroyed: static objects may hold arrays
    return *arrays;
  }

  void* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (keepers_ > 0 && bytes >= kLeastOfOwn) bytes = std::max(bytes, kLeastBytesOfHugePages);
    auto array = take_kept(bytes);
    if (array.empty()) array = fresh(bytes);
    void* const memory = array.key();
    bytes_in_use_ += array.mapped().bytes;
    in_use_.insert(std::move(array));
    most_in_use_ = std::max(most_in_use_, bytes_in_use_);
    free_kept_beyond(most_in_use_ - bytes_in_use_);
    return memory;
  }

  void free(void* memory) noexcept {
    const std::lock_guard lock(mutex_);
    auto array = in_use_.extract(memory);
    bytes_in_use_ -= array.mapped().bytes;
    if (keepers_ == 0) return release(array);
    bytes_kept_ += array.mapped().bytes;
    array.mapped().freed = ++frees_;
    kept_.insert(std::move(array));
    free_kept_beyond(most_in_use_ - bytes_in_use_);
  }

  void free_kept() noexcept {
    const std::lock_guard lock(mutex_);
    free_kept_beyond(0);
  }

  void keep(int more) noexcept {
    const std::lock_guard lock(mutex_);
    if (keepers_ == 0) most_in_use_ = bytes_in_use_;
    keepers_ += more;
    if (keepers_ == 0) free_kept_beyond(0), shared_.reset();
  }

 private:
  struct Array {
    std::size_t bytes;
    std::uint64_t freed;           ///< counts the frees
    std::shared_ptr<char> shared;  ///< pages that it is a part of; null: it has its own
  };
  using Arrays = std::map<void*, Array>;  ///< by their memory; they change hands without an allocation that could fail

  Arrays::node_type fresh(std::size_t bytes) {
    Arrays one{{nullptr, {}}};
    auto array = one.extract(one.begin());
    if (keepers_ > 0 && bytes < kLeastBytesOfHugePages) {
      bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      if (!shared_ || bytes > kSharedPages - shared_used_) {
        std::size_t all = kSharedPages;
        shared_ = std::shared_ptr<char>(static_cast<char*>(pages(all)), [all](char* p) { free_pages(p, all); });
        shared_used_ = 0;
      }
      array.key() = shared_.get() + shared_used_, array.mapped().shared = shared_;
      shared_used_ += bytes;
    } else {
      array.key() = pages(bytes);
    }
    array.mapped().bytes = bytes;
    return array;
  }

  void* pages(std::size_t& bytes) {
    void* memory = allocate_pages(bytes, kAlignment);
    if (memory == nullptr) {  // what is kept may be what is missing
      free_kept_beyond(0);
      memory = allocate_pages(bytes, kAlignment);
      if (memory == nullptr) throw std::bad_alloc();
    }
    return memory;
  }

  static void release(Arrays::node_type& array) noexcept {
    if (!array.mapped().shared) free_pages(array.key(), array.mapped().bytes);
    array.mapped().shared.reset();
  }

  /// The smallest that suffices and is not twice as large.
  Arrays::node_type take_kept(std::size_t bytes) {
    auto best = kept_.end();
    for (auto one = kept_.begin(); one != kept_.end(); ++one)
      if (one->second.bytes >= bytes && one->second.bytes < 2 * bytes &&
          (best == kept_.end() || one->second.bytes < best->second.bytes))
        best = one;
    if (best == kept_.end()) return {};
    bytes_kept_ -= best->second.bytes;
    return kept_.extract(best);
  }

  /// The oldest first.
  void free_kept_beyond(std::size_t most) noexcept {
    while (bytes_kept_ > most) {
      const auto oldest = std::min_element(kept_.begin(), kept_.end(),
                                           [](const auto& a, const auto& b) { return a.second.freed < b.second.freed; });
      bytes_kept_ -= oldest->second.bytes;
      auto array = kept_.extract(oldest);
      release(array);
    }
  }

  std::mutex mutex_;
  Arrays in_use_, kept_;
  std::uint64_t frees_ = 0;
  std::size_t bytes_in_use_ = 0, most_in_use_ = 0, bytes_kept_ = 0;
  std::shared_ptr<char> shared_;  ///< pages that are not full
  std::size_t shared_used_ = 0;
  int keepers_ = 0;
};

}  // namespace

void* allocate_host_array(std::size_t bytes) {
  return bytes < kLargeHostArray ? ::operator new(bytes) : LargeArrays::all().allocate(bytes);
}

void free_host_array(void* memory, std::size_t bytes) noexcept {
  if (bytes < kLargeHostArray) ::operator delete(memory);
  else LargeArrays::all().free(memory);
}

void free_kept_arrays() { LargeArrays::all().free_kept(); }

KeptArrays::KeptArrays() { LargeArrays::all().keep(1); }
KeptArrays::~KeptArrays() { LargeArrays::all().keep(-1); }

}  // namespace shardmat
