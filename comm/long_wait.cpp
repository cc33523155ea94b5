#include "comm/long_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

constexpr double kMostSecondsBetween = 5;

}  // namespace

LongWait::LongWait(Communicator& all) : all_(all), seconds_(all.timeout_seconds()) {
  if (all.size() == 1) return;
  all.together([] { require_mpi_threads(); });
  living_.emplace(all.native(), seconds_);
  all_.set_timeout(std::numeric_limits<double>::infinity());
  thread_ = std::thread([this] { show_life(); });
}

LongWait::~LongWait() {
  if (!living_) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  if (std::uncaught_exceptions() > exceptions_) living_->give_up("this rank's work ended with an error");
  changed_.notify_one();
  thread_.join();
  all_.set_timeout(seconds_);
}

bool LongWait::ending(double within_seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(within_seconds), [&] { return ending_; });
}

void LongWait::show_life() {
  const double pause = std::min(seconds_ / 4, kMostSecondsBetween);
  try {
    while (living_->all_reduce(ending(pause) ? 1 : 0, Reduction::min) == 0) {
    }
  } catch (const Error& error) {
    if (ending(0)) return;  // of an exception, which is what the caller must learn of
    all_.give_up(error.kind() == ErrorKind::rank_lost
                     ? fmt::format("no sign of life from another rank within {:g} s", seconds_)
                     : std::string(error.what()));
  }
}

}  // namespace shardmat
