#include "tools/serve/ranks/job_run.h"

#include <algorithm>
#include <utility>

#include "tools/serve/words/utc.h"

namespace shardmat::serve {
namespace {

/// Seconds between iterates that are kept for the case that a rank is lost.
constexpr double kKeepSeconds = 1;

}  // namespace

void SliceLength::observe(std::int64_t pauses, double seconds) {
  constexpr std::int64_t kGrowth = 4, kMost = 1'000'000;
  if (pauses < 1 || !(seconds > 0)) return;
  const double each = seconds / static_cast<double>(pauses);
  const auto wanted = static_cast<std::int64_t>(std::min(kSeconds / each, static_cast<double>(kMost)));
  pauses_ = std::clamp<std::int64_t>(wanted, 1, std::min(kMost, kGrowth * pauses_));
  expected_ = each * static_cast<double>(pauses_);
}

JobRun::JobRun(std::uint64_t number, std::uint64_t matrix_id, std::uint64_t mass_id, std::int64_t width,
               std::vector<std::shared_ptr<RankJob>> jobs, Actions actions)
    : number_(number), matrix_id_(matrix_id), mass_id_(mass_id), width_(width), actions_(std::move(actions)) {
  has_guess_ = jobs.front()->guess_place().has_value();
  for (auto& job : jobs)
    parts_.push_back({job, job->b, job->x, job->guess, nullptr, nullptr, job->memory,
                      job->b_place().value_or(service::Place()), job->guess_place().value_or(service::Place()), 0});
}

const Client& JobRun::next_client() {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const RankJob& job = *parts_[charged_++ % parts_.size()].job;
    if (job.is_wanted()) return job.client;
  }
  return parts_.front().job->client;
}

bool JobRun::has_others(const RankJob& job) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const Part& part) { return part.job.get() != &job && part.job->is_wanted(); });
}

void JobRun::begin(const std::vector<std::uint64_t>& vectors) {
  began_ = kept_ = now();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    part.vector = vectors[i];
    part.job->merged = std::ssize(parts_);
    part.job->begin(shared_from_this(), part.vector);
  }
}

service::Begin JobRun::begin_command() const {
  service::Begin begin{number_,    first().kind,          matrix_id_, mass_id_, width_, first().settings, first().has_b,
                       has_guess_, first().guess_columns, {}};
  for (const Part& part : parts_) begin.parts.push_back({part.vector, part.job->columns, part.b_place, part.guess_place});
  return begin;
}

decltype(service::Command::what) JobRun::next_command() {
  if (!has_begun_) return begin_command();
  const auto some = [&](bool (RankJob::*is)() const) {
    return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) { return (*part.job.*is)(); });
  };
  if (!some(&RankJob::is_wanted)) return service::Cancel{number_};
  service::Slice slice{number_, length_.pauses(), some(&RankJob::is_late), false, {}};
  keeps_ = slice.keeps = is_set_up_ && first().keeps_iterates && now() - kept_ >= kKeepSeconds && may_keep();
  for (Part& part : parts_) part.written.reset();
  if (keeps_ || some(&RankJob::gives_x))
    for (Part& part : parts_) {
      part.written = part.spare ? part.spare : part.x;
      if (part.written) slice.x.push_back(part.written->offset());
    }
  return slice;
}

/// What a job would begin from after the loss of a rank stays until all of the next iterate is written: that goes elsewhere.
bool JobRun::may_keep() {
  const auto has_room = [&](Part& part) {
    if (part.job->has_guess && !part.spare) part.spare = actions_.room_for_x(*part.job);
    return !part.job->has_guess || part.spare;
  };
  if (std::all_of(parts_.begin(), parts_.end(), has_room)) return true;
  kept_ = now();
  return false;
}

void JobRun::take(const std::vector<service::Answer>& answers, const std::optional<Problem>& problem) {
  if (has_left_) return;
  if (problem) {
    Problem named = *problem;
    if (named.code == "bad_matrix") named.code = "bad_job";
    lacks_solver_ = !is_set_up_ && named.code == "bad_job";
    spoilt_ = is_set_up_ && named.code != "bad_job";
    return lose(named);
  }
  const auto keep = shared_from_this();
  if (std::holds_alternative<service::Begun>(answers.front().what)) {
    take_begun(answers);
  } else if (std::holds_alternative<service::Progress>(answers.front().what)) {
    take_progress(answers);
  } else {  // it was cancelled
    leave();
    for (const Part& part : parts_) part.job->finish_cancel();
  }
  if (!has_left_) actions_.goes_on(*this);
}

void JobRun::take_begun(const std::vector<service::Answer>& answers) {
  has_begun_ = true;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Vector& result = parts_[i].job->result;
    result.bytes_of_ranks.clear();
    for (const service::Answer& answer : answers) {
      const service::VectorMade& x = std::get<service::Begun>(answer.what).x.at(i);
      result.distribution = x.distribution, result.size = x.size;
      result.bytes_of_ranks.push_back(x.bytes);
    }
  }
}

void JobRun::take_progress(const std::vector<service::Answer>& answers) {
  const auto& progress = std::get<service::Progress>(answers.front().what);
  length_.observe(progress.pauses, progress.seconds);
  if (progress.pauses > 0) iterations_ += progress.pauses, iterating_ += progress.seconds;
  if (progress.is_set_up && (!is_set_up_ || progress.ended)) told_ = answers;
  is_set_up_ = progress.is_set_up;
  if (keeps_) {
    for (Part& part : parts_) {
      if (part.spare) part.x.swap(part.spare);  // x is what was written now
      if (!part.job->ended()) part.job->x = part.x, part.job->has_guess = true;
    }
    kept_ = now();
  }
  keeps_ = false;
  std::size_t first = 0;
  for (const Part& part : parts_) {
    part.job->take(progress, first);
    first += static_cast<std::size_t>(part.job->columns);
  }
  if (progress.ended) finish(progress);
}

void JobRun::finish(const service::Progress& progress) {
  leave();
  std::span<const service::JobColumn> rest(progress.columns);
  for (const Part& part : parts_) {
    const auto own = rest.first(std::min(rest.size(), static_cast<std::size_t>(part.job->columns)));
    rest = rest.subspan(own.size());
    if (part.job->ended() && !own.empty()) actions_.drop_vector(part.vector);
    if (!part.job->ended() && part.job->answers_x) part.job->answer = part.written;
    if (!part.job->ended() && !own.empty()) part.job->kept_x = part.written;
    part.job->finish(own);
  }
}

void JobRun::tell_solvers(HeldSolvers& solvers) {
  const bool is_solve = first().kind == "solve";  // others have none that stay
  const std::string settings = is_solve ? first().settings : "";
  const std::int64_t columns = is_solve ? width_ : 0;
  if (!told_.empty()) solvers.take(std::exchange(told_, {}), settings, columns, seconds_since_1970());
  if (spoilt_) solvers.drop(settings, columns);
}

void JobRun::lose(const Problem& problem) {
  if (has_left_) return;
  const auto keep = shared_from_this();
  leave();
  const bool freed = frees_memory(problem);
  for (const Part& part : parts_) part.job->lose(problem, freed);
}

/// Matrices stay for jobs that are merged: each of them alone takes less memory.
bool JobRun::frees_memory(const Problem& problem) const {
  if (is_set_up_ || problem.code != "no_memory") return false;
  bool freed_solvers = first().freed_solvers;
  for (const Part& part : parts_) part.job->freed_solvers = true;
  return actions_.free_memory(problem, freed_solvers, parts_.size() == 1);
}

void JobRun::leave() {
  has_left_ = true;
  actions_.left_ranks(*this);
}

}  // namespace shardmat::serve
