// Notices MPI calls that never return. A call of Communicator should return at once or, if it is collective, when all ranks
// have come. But a rank that is stopped inside MPI can keep other ranks inside MPI too, where they look at no deadline.
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

/// What one communicator is doing. Entered and left by one thread at a time.
class WatchedCaller {
 public:
  /// `function` lives as long as the program: a literal.
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

/// A thread that looks at what communicators are doing. Time for which this whole process was stopped does not count.
class CallWatch {
 public:
  /// `stuck` is called once, on the thread, with the name of a function that has not returned for `seconds`.
  CallWatch(double seconds, std::function<void(const std::string& function)> stuck);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  /// From any thread. Looked at until its last owner has gone.
  std::shared_ptr<WatchedCaller> add();

 private:
  struct Seen {
    std::weak_ptr<WatchedCaller> caller;
    std::uint64_t count = 0;
    int looks = 0;  ///< at which the same call was going on
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
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace shardmat
