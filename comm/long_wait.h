// Waiting for ranks that work alone for long. For one call of all that has no deadline, as of a library: while_meeting().
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/communicator.h"

namespace shardmat {

/// While it lives, ranks that have nothing to do wait for those that have as long as these live. All ranks show each other
/// that they do, on threads of their own, every few seconds: of one that was stopped or has died the others know after the
/// communicator's deadline, and their next wait, or the one under way, throws Error(rank_lost). A rank that lives but never
/// gets through its work is waited for. Without mpi_takes_threads() there is no such sign, and only a rank that dies is
/// missed, by mpirun. Inside another it does nothing.
class LongWait {
 public:
  /// Collective.
  explicit LongWait(Communicator& all);
  /// Waits for all ranks. While an exception passes, it waits only for the next sign of the others: they have the deadline
  /// to come to an end, too, as they do if the error is of all.
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

 private:
  /// What a rank shows; the least of all ranks is what counts.
  enum class State : int { failed = -1, working = 0, through = 1 };

  void show_life() noexcept;
  State state_within(double seconds);  ///< blocks until this rank's state is another than working, at most so long
  void end(State state);

  Communicator& all_;
  const double seconds_;
  const int exceptions_ = std::uncaught_exceptions();
  std::optional<Communicator> living_;  ///< the same ranks, for the thread; none if there is no thread
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::working;
  std::thread thread_;
};

}  // namespace shardmat
