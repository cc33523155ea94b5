// Runs a library call that may block for ever on a helper thread, while the ranks keep checking that all are alive.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <string>

#include "comm/communicator.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace checking_ranks {

/// REQUIRES: `result` is ready, or about to be, and holds an exception.
template <class T>
std::string error_text(std::future<T>& result) {
  try {
    result.get();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Collective. The text of the first rank that has one, with the rank's name.
inline std::string first_text(Communicator& communicator, const std::string& mine) {
  const auto all =
      communicator.all_gather(mine.empty() ? mine : fmt::format("rank {} failed ({})", communicator.rank(), mine));
  for (const std::string& text : all)
    if (!text.empty()) return text;
  return "the work failed on one rank";
}

}  // namespace checking_ranks

/// Collective. Runs work() on another thread of every rank. When all ranks have finished, returns the result of work(), or
/// throws on all ranks what one rank threw. The work must not use `communicator`. If it uses another communicator, MPI must
/// have been started with MPI_THREAD_MULTIPLE. If a rank is lost, or one rank failed and other ranks do not finish within
/// the deadline, calls give_up(), waits for the work and throws; in the second case the message has the first error. Work
/// that give_up() cannot end, such as a library call, ends only with the process (see on_broken()).
template <class F>
auto run_while_checking_ranks(Communicator& communicator, F&& work, const std::function<void()>& give_up = {}) {
  constexpr std::chrono::milliseconds kPause{20};
  using Clock = std::chrono::steady_clock;
  std::atomic<bool> failed = false;
  auto result = std::async(std::launch::async, [&, threads = thread_count()] {
    const ThreadCount scope(threads);
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
        communicator.lose(fmt::format(
            "{}, and the work did not end on other ranks",
            checking_ranks::first_text(communicator, failed ? checking_ranks::error_text(result) : std::string())));
    }
  } catch (...) {
    if (give_up) give_up();
    throw;
  }
  return communicator.run_agreed([&] { return result.get(); });
}

}  // namespace shardmat
