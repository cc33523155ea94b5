#include "runtime/service/engine/running_job.h"

#include <utility>

#include "comm/between_phases.h"
#include "comm/communicator.h"
#include "runtime/context/context_scope.h"

namespace shardmat::service {
namespace {

/// Ends the thread of a job that is left where it is.
struct Abandoned {};

/// Of a turn without pauses that are counted.
constexpr double kTurnSeconds = 0.01;

}  // namespace

RunningJob::RunningJob(Context& context, std::unique_ptr<JobWork> work)
    : context_(context), work_(std::move(work)), thread_([this] { run(); }) {}

RunningJob::~RunningJob() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true, works_ = true;
  }
  turn_.notify_all();
  thread_.join();
}

Progress RunningJob::advance(std::int64_t pauses, bool ends) {
  const Timer timer;
  std::unique_lock lock(mutex_);
  progress_ = {};
  if (!ended_) {
    left_ = pauses, ends_ = ends;
    if (ends && !is_set_up_) abandoned_ = true;
    since_ = Timer();
    works_ = true;
    turn_.notify_all();
    turn_.wait(lock, [&] { return !works_; });
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  progress_.seconds = timer.seconds();
  if (!is_set_up_ || progress_.is_set_up) set_up_seconds_ += progress_.seconds;
  progress_.ended = ended_, progress_.is_set_up = is_set_up_, progress_.set_up = set_up_seconds_;
  if (context_.communicator().rank() != 0) progress_.residuals.clear();
  return std::move(progress_);
}

/// Lets the engine's thread go on until the next turn.
void RunningJob::take_turns() {
  works_ = false;
  turn_.notify_all();
  turn_.wait(lock_, [&] { return works_; });
  if (abandoned_) throw Abandoned{};
}

void RunningJob::run() noexcept {
  lock_.lock();
  turn_.wait(lock_, [&] { return works_; });
  try {
    if (abandoned_) throw Abandoned{};
    const ContextScope scope(context_);
    const BetweenPhases phases(context_.communicator(), [this] { pause_if_late(); });
    JobResult result = work_->run(*this);
    progress_.columns = std::move(result.columns), progress_.facts = std::move(result.facts);
  } catch (const Abandoned&) {
  } catch (...) {
    if (!abandoned_) error_ = std::current_exception();
  }
  ended_ = true, works_ = false;
  turn_.notify_all();
  lock_.unlock();
}

void RunningJob::pause_if_late() {
  if (abandoned_) throw Abandoned{};
  if (ends_) return;  // with what it has
  if (context_.communicator().all_reduce(since_.seconds(), Reduction::max) >= kTurnSeconds) take_turns();
}

void RunningJob::set_up(std::string facts) {
  if (abandoned_) throw Abandoned{};
  is_set_up_ = progress_.is_set_up = true;
  progress_.facts = std::move(facts);
  take_turns();
}

bool RunningJob::pause() {
  ++progress_.pauses;
  if (ends_) return false;
  if (--left_ > 0) return true;
  take_turns();
  return !ends_;
}

void RunningJob::note(std::int64_t iteration, std::vector<double> norms) {
  progress_.residuals.push_back({iteration, std::move(norms)});
}

}  // namespace shardmat::service
