// Waiting for ranks that work alone for long.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "comm/communicator.h"

namespace shardmat {

/// While it lives, ranks that have nothing to do wait for those that have as long as these live. All ranks show each other
/// that they do, on threads of their own, every few seconds: of one that was stopped or has died the others know after the
/// communicator's deadline, and their next wait, or the one under way, throws Error(rank_lost). A rank that lives but never
/// gets through its work is waited for.
class LongWait {
 public:
  /// Collective. With several ranks, throws what require_mpi_threads() does.
  explicit LongWait(Communicator& all);
  /// Waits for all ranks; not while an exception passes, of which they may know nothing.
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

 private:
  void show_life();
  bool ending(double within_seconds);  ///< blocks until the object's end is near, at most so long

  Communicator& all_;
  const double seconds_;
  const int exceptions_ = std::uncaught_exceptions();
  std::optional<Communicator> living_;  ///< the same ranks, for the thread; none if there is one rank
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace shardmat
