#include "kernels/base/host_vector.h"

#include <algorithm>
#include <cstdlib>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "kernels/base/huge_pages.h"
#include "kernels/base/kept_arrays.h"

namespace shardmat {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLargeBytes = std::size_t{128} << 10;  ///< from here on malloc() asks the system, too

/// Large arrays: those in use, and freed ones that are kept.
class LargeArrays {
 public:
  static LargeArrays& all() {
    static LargeArrays* const arrays = new LargeArrays;  // never destroyed: static objects may hold arrays
    return *arrays;
  }

  void* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    Array array = take_kept(bytes);
    if (array.memory == nullptr) array = fresh(bytes);
    if (array.memory == nullptr) {  // what is kept may be what is missing
      free_kept_beyond(0);
      array = fresh(bytes);
      if (array.memory == nullptr) throw std::bad_alloc();
    }
    in_use_.emplace(array.memory, array.bytes);
    bytes_in_use_ += array.bytes;
    most_in_use_ = std::max(most_in_use_, bytes_in_use_);
    free_kept_beyond(most_in_use_ - bytes_in_use_);
    return array.memory;
  }

  void free(void* memory) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = in_use_.find(memory);
    const std::size_t bytes = found->second;
    in_use_.erase(found);
    bytes_in_use_ -= bytes;
    if (keepers_ == 0) return std::free(memory);
    kept_.push_back({memory, bytes});
    bytes_kept_ += bytes;
    free_kept_beyond(most_in_use_ - bytes_in_use_);
  }

  void free_kept() {
    const std::lock_guard lock(mutex_);
    free_kept_beyond(0);
  }

  void keep(int more) noexcept {
    const std::lock_guard lock(mutex_);
    if (keepers_ == 0) most_in_use_ = bytes_in_use_;
    keepers_ += more;
    if (keepers_ == 0) free_kept_beyond(0);
  }

 private:
  struct Array {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };

  static Array fresh(std::size_t bytes) {
    void* const memory = allocate_pages(bytes, kAlignment);
    return {memory, bytes};
  }

  /// The smallest that suffices and is not twice as large.
  Array take_kept(std::size_t bytes) {
    auto best = kept_.end();
    for (auto one = kept_.begin(); one != kept_.end(); ++one)
      if (one->bytes >= bytes && one->bytes < 2 * bytes && (best == kept_.end() || one->bytes < best->bytes)) best = one;
    if (best == kept_.end()) return {};
    const Array array = *best;
    kept_.erase(best);
    bytes_kept_ -= array.bytes;
    return array;
  }

  void free_kept_beyond(std::size_t most) {
    for (; bytes_kept_ > most; kept_.pop_front()) {
      std::free(kept_.front().memory);
      bytes_kept_ -= kept_.front().bytes;
    }
  }

  std::mutex mutex_;
  std::unordered_map<void*, std::size_t> in_use_;
  std::list<Array> kept_;  ///< the oldest first
  std::size_t bytes_in_use_ = 0, most_in_use_ = 0, bytes_kept_ = 0;
  int keepers_ = 0;
};

}  // namespace

void* allocate_host_array(std::size_t bytes) {
  return bytes < kLargeBytes ? ::operator new(bytes) : LargeArrays::all().allocate(bytes);
}

void free_host_array(void* memory, std::size_t bytes) noexcept {
  if (bytes < kLargeBytes) ::operator delete(memory);
  else LargeArrays::all().free(memory);
}

void free_kept_arrays() { LargeArrays::all().free_kept(); }

KeptArrays::KeptArrays() { LargeArrays::all().keep(1); }
KeptArrays::~KeptArrays() { LargeArrays::all().keep(-1); }

}  // namespace shardmat
