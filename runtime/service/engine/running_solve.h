// A solve that can be paused between iterations, with all that it has come to. It has a thread of its own, which runs only
// while advance() waits for it: one of both threads works at a time, so they share the communicator, the stream and the
// matrix.
//
// Threads: that of the engine. Collective: constructor, advance().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/matrix/distributed_vector.h"
#include "runtime/service/wire/command.h"
#include "runtime/solvers/solver.h"

namespace shardmat::service {

class RunningSolve {
 public:
  /// Does not begin yet. REQUIRES: the solver outlives it.
  RunningSolve(Solver& solver, DistributedVector b, DistributedVector x);
  /// A solve that has not ended is left where it is: the solver must not be used any more.
  ~RunningSolve();
  RunningSolve(const RunningSolve&) = delete;
  RunningSolve& operator=(const RunningSolve&) = delete;

  /// Goes on until the solve has paused `pauses` times more, or has ended; `ends`: it ends at its next pause. Throws what
  /// the solve throws.
  Progress advance(std::int64_t pauses, bool ends);
  /// As far as it came. Complete once the stream has passed.
  const DistributedVector& x() const { return x_; }
  bool ended() const { return ended_; }
  Solver& solver() { return solver_; }

 private:
  void run() noexcept;
  void describe(const SolveResult& result);

  Solver& solver_;
  DistributedVector b_, x_;
  std::mutex mutex_;
  std::condition_variable turn_;
  bool solves_ = false;  ///< the solve's thread has its turn
  bool ended_ = false, ends_ = false, abandoned_ = false;
  std::int64_t left_ = 0;
  Progress progress_;
  std::exception_ptr error_;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace shardmat::service
