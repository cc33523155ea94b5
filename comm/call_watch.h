// Notices MPI calls that never return. An MPI call of Communicator should return at once, or, if it is collective, when all
// ranks have called it. But a rank that is stopped inside MPI can hold other ranks inside MPI, where they check no deadline.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shardmat {

/// The MPI call that one communicator is in. One thread at a time enters and leaves.
class WatchedCaller {
 public:
  /// REQUIRES: `function` lives as long as the program (a literal).
  void enter(const char* function) {
    function_.store(function, std::memory_order_relaxed);
    step();
  }
  void leave() { step(); }

 private:
  friend class CallWatch;
  void step() { count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  std::atomic<std::uint64_t> count_{0};  ///< odd during a call
  std::atomic<const char*> function_{nullptr};
};

/// A thread that watches the calls of communicators. Time for which the whole process was stopped does not count.
class CallWatch {
 public:
  /// The thread calls `stuck` once, with the name of a function that has not returned for `seconds`.
  CallWatch(double seconds, std::function<void(const std::string& function)> stuck);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  /// Adds a caller, which is watched until its last owner has gone. From any thread.
  std::shared_ptr<WatchedCaller> add();

 private:
  struct Seen {
    std::weak_ptr<WatchedCaller> caller;
    std::uint64_t count = 0;
    int looks = 0;  ///< consecutive looks that saw the same call
  };

  void watch();
  /// The function that has been running for `most` looks in a row, else null.
  const char* look(int most);

  const double seconds_;
  const std::function<void(const std::string&)> stuck_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::vector<Seen> seen_;
  std::thread thread_;  ///< the last member, because the thread uses the others
};

}  // namespace shardmat
