// A std::vector whose resize() leaves trivial elements uninitialised. So the threads that fill a large array are also the
// first to touch its pages (NUMA placement). Large arrays ask for huge pages: the system clears them faster, and fewer
// page-table entries are needed.
// Ownership: as std::vector. Nothing is collective.
// Threads: as std::vector.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace shardmat {

/// Memory of an array, aligned for any type. Throws std::bad_alloc.
void* allocate_host_array(std::size_t bytes);
void free_host_array(void* memory, std::size_t bytes) noexcept;

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
  T* allocate(std::size_t n) {
    if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_host_array(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t n) { free_host_array(p, n * sizeof(T)); }
};

template <class T>
using HostVector = std::vector<T, UninitialisedAllocator<T>>;

}  // namespace shardmat
