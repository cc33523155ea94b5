// Waiting without a deadline for ranks that work alone for long. For a blocking library call on all ranks see
// run_while_checking_ranks().
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/communicator.h"

namespace shardmat {

/// While this object exists, waits on the communicator have no deadline: idle ranks wait for working ranks as long as these
/// are alive. A thread of each rank exchanges a sign of life every few seconds. If a rank died or was stopped, the other
/// ranks notice it after the communicator's deadline, and their present or next wait throws Error(rank_lost). A rank that is
/// alive but never finishes is waited for. Without mpi_takes_threads() there are no signs of life, and the deadline becomes
/// ten times as long. With signs of life, a LongWait inside another one does nothing.
class LongWait {
 public:
  /// Collective.
  explicit LongWait(Communicator& all);
  /// Waits for all ranks. If an exception is passing, waits only for the next sign of life; the other ranks then have the
  /// deadline to finish, too, as they do if all ranks throw.
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

 private:
  /// The sign of life of a rank; the minimum over all ranks counts.
  enum class State : int { failed = -1, working = 0, through = 1 };

  void show_life() noexcept;
  State state_within(double seconds);  ///< waits until this rank is no longer working, at most `seconds`; returns the state
  void end(State state);

  Communicator& all_;
  const double seconds_;
  const int exceptions_ = std::uncaught_exceptions();
  std::optional<Communicator> living_;  ///< the thread's communicator of the same ranks; none without a thread
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::working;
  std::thread thread_;
};

}  // namespace shardmat
