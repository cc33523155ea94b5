// Python's lock, given up and taken by threads of any kind, also while the interpreter ends.
//
// Up to Python 3.13, a daemon thread that wants the lock of an interpreter that ends is ended by pthread_exit(). That
// unwinds its stack, and destructors and callbacks from C end the whole process there (SIGABRT). Such a thread waits here
// until the process has ended, as newer versions do it themselves. Before that, the end waits for calls under way
// (ending.cpp).
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <atomic>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

namespace shardmat::python {

/// Threads in calls of the library, which may hold locks of it.
inline std::atomic<int> threads_in_calls{0};

/// The interpreter ends, and another thread ends it: solves stop.
bool ends_here();
/// Calls were left under way when the interpreter ended: nothing may wait for their contexts.
bool left_calls_behind();

[[noreturn]] inline void wait_for_the_end() {
  for (;;) pause();
}

/// Runs `take`, which takes the lock.
template <class F>
auto take_lock(const F& take) {
#ifdef __GLIBCXX__
  try {
    return take();
  } catch (abi::__forced_unwind&) {
    wait_for_the_end();
  }
#else
  return take();
#endif
}

/// Without the lock until the end of the scope. REQUIRES: the thread has it.
class WithoutLock {
 public:
  WithoutLock() {
    ++threads_in_calls;
    state_ = PyEval_SaveThread();
    stay_if_it_ends();
  }
  ~WithoutLock() {
    stay_if_it_ends();
    take_lock([&] {
      PyEval_RestoreThread(state_);
      return 0;
    });
    --threads_in_calls;
  }
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;

 private:
  void stay_if_it_ends() {
    if (!ends_here()) return;
    --threads_in_calls;
    wait_for_the_end();
  }

  PyThreadState* state_;
};

/// With the lock until the end of the scope, in callbacks from the library.
class WithLock {
 public:
  WithLock() : state_(take_lock([] { return PyGILState_Ensure(); })) {}
  ~WithLock() { PyGILState_Release(state_); }
  WithLock(const WithLock&) = delete;
  WithLock& operator=(const WithLock&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace shardmat::python
