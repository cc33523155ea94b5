// Work that waits for other ranks without a deadline, or that others wait for longer than one: it runs on a thread of its
// own while the ranks keep meeting, so that a lost one is noticed all the same.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>

#include "comm/communicator.h"

namespace shardmat {

/// Collective. Runs work() on another thread of every rank until all are through with it, then throws on all ranks what one
/// threw, or returns its result. The work must not use `communicator`; if it uses another, MPI must have been started with
/// MPI_THREAD_MULTIPLE. When ranks are lost, or one has failed and others do not come back from the work within the
/// deadline, calls give_up() and waits for the work; what cannot be ended, as a call of a library, ends with the process:
/// on_broken().
template <class F>
auto while_meeting(Communicator& communicator, F&& work, const std::function<void()>& give_up = {}) {
  constexpr std::chrono::milliseconds kPause{20};
  using Clock = std::chrono::steady_clock;
  std::atomic<bool> failed = false;
  auto result = std::async(std::launch::async, [&] {
    try {
      return work();
    } catch (...) {
      failed = true;
      throw;
    }
  });
  try {
    Clock::time_point intact = Clock::now();  // when nothing had failed yet
    for (;;) {
      const bool ready = result.wait_for(kPause) == std::future_status::ready;
      if (communicator.all_reduce<std::int64_t>(ready ? 1 : 0, Reduction::min) == 1) break;
      if (communicator.all_reduce<std::int64_t>(failed ? 1 : 0, Reduction::max) == 0) intact = Clock::now();
      else if (std::chrono::duration<double>(Clock::now() - intact).count() > communicator.timeout_seconds())
        communicator.lose("work that failed on one rank did not end on the others");
    }
  } catch (...) {
    if (give_up) give_up();
    throw;
  }
  return communicator.together([&] { return result.get(); });
}

}  // namespace shardmat
