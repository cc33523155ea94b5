#include "tools/serve/ranks/solve_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/serve/words/problem.h"

namespace shardmat::serve {
namespace {

/// Seconds between iterates that are kept for the case that a rank is lost.
constexpr double kKeepSeconds = 1;

Problem over_limit(double seconds) {
  return make_problem(504, "time_limit", fmt::format("the job's limit of {:g} s passed, queue included", seconds));
}

}  // namespace

void ResidualHistory::add(const service::Residual& residual) {
  if (residual.iteration % step_ != 0) return;
  all_.push_back(residual);
  if (all_.size() < kMost) return;
  step_ *= 2;
  std::erase_if(all_, [&](const service::Residual& one) { return one.iteration % step_ != 0; });
}

void SliceLength::observe(std::int64_t pauses, double seconds) {
  constexpr std::int64_t kGrowth = 4, kMost = 1'000'000;
  if (pauses < 1 || !(seconds > 0)) return;
  const double each = seconds / static_cast<double>(pauses);
  const auto wanted = static_cast<std::int64_t>(std::min(kSeconds / each, static_cast<double>(kMost)));
  pauses_ = std::clamp<std::int64_t>(wanted, 1, std::min(kMost, kGrowth * pauses_));
  expected_ = each * static_cast<double>(pauses_);
}

void SolveJob::arrive() {
  arrived_ = now();
  if (limit_seconds < std::numeric_limits<double>::infinity())
    limit_.start(limit_seconds, [weak = weak_from_this()] {
      if (const auto job = weak.lock()) job->pass_limit();
    });
}

void SolveJob::pass_limit() {
  if (state_ == JobState::queued) return fail(over_limit(limit_seconds));
  late_ = true;  // its next slice is the last one
}

void SolveJob::begin(std::uint64_t solve_number, std::uint64_t vector_number) {
  solve = solve_number, result.number = vector_number;
  state_ = JobState::running;
  has_begun_ = false;
  length_ = {};
  history_.clear();
  last_ = {};
  if (began_ == 0) began_ = now();
  kept_ = now();
  actions_.changed(*this);
}

decltype(service::Command::what) SolveJob::next_command() {
  if (!has_begun_)
    return service::Solve{solve, matrix_id, result.number, columns, settings, b->offset(), has_guess, x->offset()};
  if (cancels_) return service::Cancel{solve};
  keeps_ = now() - kept_ >= kKeepSeconds;
  if (keeps_) has_guess = false;  // until the ranks have written all of it
  return service::Slice{solve, length_.pauses(), late_, keeps_, x->offset()};
}

void SolveJob::take(const std::vector<service::Answer>& answers, const std::optional<Problem>& problem) {
  if (ended()) return;
  if (problem) {
    Problem named = *problem;
    if (named.code == "bad_matrix") named.code = "bad_job";
    return lose(named);
  }
  if (std::holds_alternative<service::SolveBegun>(answers.front().what)) {
    begun_ = std::get<service::SolveBegun>(answers.front().what);
    has_begun_ = true;
    result.distribution = begun_.x.distribution, result.size = begun_.x.size;
    result.bytes_of_ranks.clear(), solver_bytes.clear();
    for (const service::Answer& answer : answers) {
      const auto& of_rank = std::get<service::SolveBegun>(answer.what);
      result.bytes_of_ranks.push_back(of_rank.x.bytes), solver_bytes.push_back(of_rank.solver_bytes);
    }
  } else if (const auto* progress = std::get_if<service::Progress>(&answers.front().what)) {
    take_progress(*progress);
  } else {
    end(JobState::cancelled);
  }
  if (!ended()) actions_.goes_on(*this);
}

void SolveJob::take_progress(const service::Progress& progress) {
  length_.observe(progress.pauses, progress.seconds);
  for (const service::Residual& residual : progress.residuals) history_.add(last_ = residual);
  if (keeps_ || progress.ended) has_guess = true, kept_ = now();
  keeps_ = false;
  if (progress.ended) return finish(progress);
  actions_.changed(*this);
}

void SolveJob::finish(const service::Progress& progress) {
  solved_ = progress.columns;
  begun_.method = progress.method, begun_.preconditioner = progress.preconditioner;
  has_result = true;
  const bool converged =
      std::all_of(solved_.begin(), solved_.end(), [](const service::SolvedColumn& one) { return one.converged; });
  if (converged) return end(JobState::done);
  problem_ = late_ ? over_limit(limit_seconds) : make_problem(422, "not_converged", progress.explanation);
  end(JobState::failed);
}

/// A lost rank is forgiven once: the job begins again from the last iterate that was kept.
void SolveJob::lose(const Problem& problem) {
  if (problem.code != "rank_lost" || cancels_ || restarts_ > 0) return fail(problem);
  ++restarts_;
  state_ = JobState::queued;
  keeps_ = false;
  actions_.left_ranks(*this);
  actions_.changed(*this);
}

void SolveJob::fail(const Problem& problem) {
  if (ended()) return;
  problem_ = problem;
  end(cancels_ ? JobState::cancelled : JobState::failed);
}

void SolveJob::cancel() {
  cancels_ = true;
  if (state_ == JobState::queued) end(JobState::cancelled);
}

void SolveJob::when_ended(std::function<void()> told) {
  if (ended()) return told();
  told_.push_back(std::move(told));
}

void SolveJob::end(JobState state) {
  const bool was_running = state_ == JobState::running;
  const auto keep = shared_from_this();
  state_ = state;
  ended_ = now();
  limit_.cancel();
  if (was_running) actions_.left_ranks(*this);
  actions_.changed(*this);
  for (const auto& told : std::exchange(told_, {})) told();
}

}  // namespace shardmat::serve
