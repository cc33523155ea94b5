// Loads a matrix on a thread of its own, while the engine carries out other commands. The thread has a communicator and a
// context of its own, which the matrix keeps: its products, which the engine carries out later, use them.
//
// This thread and the engine share a core. So a product of another matrix waits a few milliseconds at most.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "comm/communicator.h"
#include "runtime/context/context.h"
#include "runtime/service/engine/resident_matrix.h"
#include "runtime/service/wire/command.h"

namespace shardmat::service {

/// A matrix on the ranks, and what it works with if this is its own.
struct OnRanks {
  std::unique_ptr<Communicator> ranks;
  std::unique_ptr<Context> context;
  std::unique_ptr<ResidentMatrix> matrix;
};

class BackgroundLoad {
 public:
  /// Makes the matrix. Collective over the ranks of the context.
  using Make = std::function<std::unique_ptr<ResidentMatrix>(Context&)>;

  /// True if this program's MPI and the ranks' devices allow it. The same on all ranks.
  static bool is_possible(const Context& context);

  /// Starts the thread. `done` is called on it, with Done or with the error that all ranks agreed on; an error of one rank
  /// alone ends the process. Collective over the ranks of `engine`, one load at a time.
  BackgroundLoad(const Context& engine, Make make, std::function<void(decltype(Answer::what))> done);
  /// Waits for the thread.
  ~BackgroundLoad() = default;
  BackgroundLoad(const BackgroundLoad&) = delete;
  BackgroundLoad& operator=(const BackgroundLoad&) = delete;

  /// Waits for the thread; the matrix is null if the load failed.
  OnRanks take();

 private:
  void run() noexcept;

  OnRanks made_;
  Make make_;
  std::function<void(decltype(Answer::what))> done_;
  std::jthread thread_;  ///< last: it uses the others
};

}  // namespace shardmat::service
