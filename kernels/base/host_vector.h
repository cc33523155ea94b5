// A std::vector whose resize() leaves trivial elements uninitialised. So the threads that fill a large array are also the
// first to touch its pages (NUMA placement).
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace shardmat {

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
};

template <class T>
using HostVector = std::vector<T, UninitialisedAllocator<T>>;

}  // namespace shardmat
