#include "tools/serve/ranks/rank_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/serve/ranks/job_run.h"
#include "tools/serve/words/problem.h"

namespace shardmat::serve {
namespace {

Problem over_limit(double seconds) {
  return make_problem(504, "time_limit", fmt::format("the job's limit of {:g} s passed, queue included", seconds));
}

}  // namespace

void ResidualHistory::add(const Entry& entry) {
  if (entry.iteration % step_ != 0) return;
  all_.push_back(entry);
  if (all_.size() < kMost) return;
  step_ *= 2;
  std::erase_if(all_, [&](const Entry& one) { return one.iteration % step_ != 0; });
}

void ResidualHistory::end_at(std::int64_t iteration) {
  std::erase_if(all_, [&](const Entry& one) { return one.iteration > iteration; });
}

std::optional<service::Place> RankJob::b_place() const {
  if (b_at) return service::Place{0, *b_at, memory->number()};
  return b ? std::optional(service::Place{0, b->offset(), 0}) : std::nullopt;
}

std::optional<service::Place> RankJob::guess_place() const {
  if (has_guess && guess) return service::Place{0, guess->offset(), 0};
  if (has_guess && x) return service::Place{0, x->offset(), 0};
  return x0_at ? std::optional(service::Place{0, *x0_at, memory->number()}) : std::nullopt;
}

bool RankJob::may_merge_with(const RankJob& other) const {
  return !alone && !other.alone && shares_solver_with(other) && type == other.type && columns == 1 && other.columns == 1 &&
         guess_place().has_value() == other.guess_place().has_value() && priority == other.priority;
}

void RankJob::arrive() {
  arrived_ = now();
  if (limit_seconds < std::numeric_limits<double>::infinity())
    limit_.start(limit_seconds, [weak = weak_from_this()] {
      if (const auto job = weak.lock()) job->pass_limit();
    });
}

bool RankJob::has_company() const {
  const auto with = run.lock();
  return with && with->has_others(*this);
}

void RankJob::pass_limit() {
  if (state_ == JobState::queued || has_company()) return fail(over_limit(limit_seconds));
  late_ = true;
}

void RankJob::begin(const std::shared_ptr<JobRun>& with, std::uint64_t vector_number) {
  run = with, result.number = vector_number;
  state_ = JobState::running;
  history_.clear();
  last_ = {};
  facts_.clear();
  if (began_ == 0) began_ = now();
  changed_(*this);
}

void RankJob::take(const service::Progress& progress, std::size_t first) {
  if (ended()) return;
  set_up_seconds_ = progress.set_up;
  if (!progress.facts.empty()) facts_ = progress.facts;
  for (const service::Residual& residual : progress.residuals) {
    const auto begin = residual.norms.begin() + static_cast<std::ptrdiff_t>(std::min(first, residual.norms.size()));
    const auto end = begin + std::min<std::ptrdiff_t>(columns, residual.norms.end() - begin);
    last_ = {residual.iteration, begin == end ? 0 : *std::max_element(begin, end)};
    history_.add(last_);
  }
  if (!progress.ended) changed_(*this);
}

void RankJob::finish(std::span<const service::JobColumn> ends) {
  if (ended()) return;
  results_.assign(ends.begin(), ends.end());
  if (results_.empty()) return end(cancels_ ? JobState::cancelled : JobState::failed);
  std::int64_t took = 0;
  for (const service::JobColumn& column : ends) took = std::max(took, column.iterations);
  history_.end_at(took);
  last_.iteration = took;
  if (!history_.all().empty() && history_.all().back().iteration == took) last_ = history_.all().back();
  has_result = true;
  const auto bad = std::find_if(ends.begin(), ends.end(), [](const service::JobColumn& one) { return !one.converged; });
  if (bad == ends.end()) return end(JobState::done);
  problem_ = late_ ? over_limit(limit_seconds) : make_problem(422, "not_converged", bad->explanation);
  end(JobState::failed);
}

void RankJob::wait_again() {
  state_ = JobState::queued;
  run.reset();
  changed_(*this);
}

/// A lost rank is forgiven once: the job begins again from the last iterate that was kept. What is wrong with one of several
/// jobs shows when each begins again by itself.
void RankJob::lose(const Problem& problem, bool freed) {
  if (ended()) return;
  const bool lost = problem.code == "rank_lost";
  if (late_ && (lost || freed || merged > 1)) return fail(over_limit(limit_seconds));
  if (!cancels_ && freed) return wait_again();
  if (!cancels_ && lost && restarts_ == 0) {
    ++restarts_;
    return wait_again();
  }
  if (!cancels_ && !lost && merged > 1) {
    alone = true;
    return wait_again();
  }
  fail(problem);
}

void RankJob::fail(const Problem& problem) {
  if (ended()) return;
  problem_ = problem;
  end(cancels_ ? JobState::cancelled : JobState::failed);
}

void RankJob::cancel() {
  cancels_ = true;
  if (state_ == JobState::queued || has_company()) end(JobState::cancelled);
}

void RankJob::when_ended(std::function<void()> told) {
  if (ended()) return told();
  told_.push_back(std::move(told));
}

void RankJob::end(JobState state) {
  if (ended()) return;
  const auto keep = shared_from_this();
  state_ = state;
  if (late_ && state == JobState::failed && !problem_) problem_ = over_limit(limit_seconds);
  ended_ = now();
  limit_.cancel();
  changed_(*this);
  for (const auto& told : std::exchange(told_, {})) told();
  answer.reset();
}

}  // namespace shardmat::serve
