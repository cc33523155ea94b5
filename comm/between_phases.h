// What a thread does between phases of collective work that it runs: it may let other work of the same ranks go first.
//
// Threads: a scope belongs to the thread that made it.
#pragma once

#include <functional>

namespace shardmat {

class Communicator;

/// While in scope the calling thread calls `action` whenever these ranks have agreed (Communicator::agree()) that none of
/// them failed. All ranks are at the same place of their work then, and no message is under way that one of them has yet to
/// send or to expect. What `action` throws leaves the phase's caller.
class BetweenPhases {
 public:
  /// REQUIRES: the communicator outlives it; no other scope is open on this thread.
  BetweenPhases(const Communicator& ranks, std::function<void()> action);
  ~BetweenPhases();
  BetweenPhases(const BetweenPhases&) = delete;
  BetweenPhases& operator=(const BetweenPhases&) = delete;

  /// For Communicator::agree().
  static void pass(const Communicator& ranks);

 private:
  const Communicator& ranks_;
  std::function<void()> action_;
  bool acts_ = false;  ///< `action` may agree on something itself
};

}  // namespace shardmat
