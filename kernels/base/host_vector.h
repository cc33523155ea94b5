// A std::vector whose resize() leaves trivial elements uninitialised. So the threads that fill a large array are also the
// first to touch its pages (NUMA placement). Large arrays ask for huge pages: the system then clears them faster, and fewer
// addresses are looked up.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace shardmat {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20, kLargeArrayBytes = std::size_t{16} << 20;

template <class T>
struct UninitialisedAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UninitialisedAllocator<U>;
  };
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }

  static constexpr bool is_large(std::size_t n) { return n >= kLargeArrayBytes / sizeof(T); }
  T* allocate(std::size_t n) {
    if (!is_large(n)) return std::allocator<T>::allocate(n);
    if (n > (std::numeric_limits<std::size_t>::max() - kHugePageBytes) / sizeof(T)) throw std::bad_array_new_length();
    const std::size_t bytes = (n * sizeof(T) + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    void* const memory = std::aligned_alloc(kHugePageBytes, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: nothing is lost where the kernel has none
    return static_cast<T*>(memory);
  }
  void deallocate(T* p, std::size_t n) {
    if (is_large(n)) std::free(p);
    else std::allocator<T>::deallocate(p, n);
  }
};

template <class T>
using HostVector = std::vector<T, UninitialisedAllocator<T>>;

}  // namespace shardmat
