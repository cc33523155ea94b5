#include "comm/long_wait.h"
#include "comm/mpi_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

namespace shardmat {
namespace {

constexpr double kMostSecondsBetween = 5, kTimesWithoutThreads = 10;

}  // namespace

LongWait::LongWait(Communicator& all) : all_(all), seconds_(all.timeout_seconds()) {
  if (all.size() == 1 || std::isinf(seconds_)) return;
  if (all.all_reduce(mpi_takes_threads() ? 1 : 0, Reduction::min) == 1) {
    living_.emplace(all.duplicate(seconds_));
    try {
      all.run_agreed([&] { thread_ = std::thread([this] { show_life(); }); });
    } catch (...) {
      end(State::failed);
      throw;
    }
  }
  all_.set_timeout(living_ ? std::numeric_limits<double>::infinity() : kTimesWithoutThreads * seconds_);
}

LongWait::~LongWait() {
  end(std::uncaught_exceptions() > exceptions_ ? State::failed : State::through);
  all_.set_timeout(seconds_);
}

void LongWait::end(State state) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    state_ = state;
  }
  changed_.notify_one();
  thread_.join();
}

LongWait::State LongWait::state_within(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return state_ != State::working; });
  return state_;
}

void LongWait::show_life() noexcept {
  const double pause = std::min(seconds_ / 4, kMostSecondsBetween);
  auto least = std::make_unique<int>();
  try {
    do {
      *least = static_cast<int>(state_within(pause));
      living_->all_reduce(std::span<int>(least.get(), 1), Reduction::min);
    } while (*least == static_cast<int>(State::working));
    if (*least == static_cast<int>(State::failed) && state_within(seconds_) == State::working)
      all_.give_up(Error(ErrorKind::rank_lost,
                         fmt::format("rank {} ({}): another rank failed: see its message", all_.rank(), all_.host())));
  } catch (const std::exception& error) {
    static_cast<void>(least.release());  // MPI may still write there
    const auto* const ours = dynamic_cast<const Error*>(&error);
    all_.give_up(Error(ErrorKind::rank_lost, error.what(), ours == nullptr ? "" : ours->setting()));
  }
}

}  // namespace shardmat
