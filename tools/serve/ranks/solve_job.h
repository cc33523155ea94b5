// One job that solves A·X = B: what was asked for, how far it has come, and which command the ranks get next.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/serve/http/event_loop.h"
#include "tools/serve/ranks/dispatcher.h"
#include "tools/serve/state/arena_space.h"
#include "tools/serve/state/vectors.h"

namespace shardmat::serve {

enum class JobState { queued, running, done, failed, cancelled };

constexpr const char* state_name(JobState state) {
  constexpr const char* kNames[] = {"queued", "running", "done", "failed", "cancelled"};
  return kNames[static_cast<int>(state)];
}

/// Norms of residuals by iteration. Of a long solve it keeps every second one, every fourth …
class ResidualHistory {
 public:
  void add(const service::Residual& residual);
  void clear() { *this = {}; }
  const std::vector<service::Residual>& all() const { return all_; }

 private:
  static constexpr std::size_t kMost = 512;
  std::vector<service::Residual> all_;
  std::int64_t step_ = 1;  ///< iterations from one to the next
};

/// How many pauses the next slice of a solve has, so that it takes about kSeconds.
class SliceLength {
 public:
  /// Half of what products of others may wait for it.
  static constexpr double kSeconds = 0.01;

  std::int64_t pauses() const { return pauses_; }
  double expected_seconds() const { return expected_; }
  void observe(std::int64_t pauses, double seconds);

 private:
  std::int64_t pauses_ = 1;
  double expected_ = kSeconds;
};

class SolveJob final : public LongWork, public std::enable_shared_from_this<SolveJob> {
 public:
  /// What becomes of it; the registry does it (jobs.h).
  struct Actions {
    std::function<void(SolveJob&)> changed;     ///< it came on, or its state changed
    std::function<void(SolveJob&)> goes_on;     ///< its next slice is due
    std::function<void(SolveJob&)> left_ranks;  ///< the ranks are at it no more: it has ended, or waits again
  };

  SolveJob(EventLoop& loop, Actions actions) : limit_(loop), actions_(std::move(actions)) {}

  // As asked for.
  std::string id, matrix, settings;
  std::int64_t columns = 1;
  ValueType type = ValueType::f64;
  std::uint64_t rows = 0;
  double limit_seconds = std::numeric_limits<double>::infinity();  ///< from its arrival on
  std::shared_ptr<const Rights> rights;
  Client client;
  Priority priority = Priority::normal;
  std::shared_ptr<ArenaSpace::Lease> b, x;  ///< where its numbers are; x: the first guess, then the last kept iterate
  bool has_guess = false;                   ///< x holds something to begin from

  // Where it is.
  int inputs = 0;  ///< vectors that are still to be read
  std::uint64_t number = 0, solve = 0;
  std::uint64_t matrix_id = 0, generation = 0;
  std::vector<std::int64_t> solver_bytes;  ///< of all solvers of the matrix, by rank, when the job began
  Vector result;                           ///< what x becomes on the ranks
  bool has_result = false;

  JobState state() const { return state_; }
  bool ended() const { return state_ != JobState::queued && state_ != JobState::running; }
  bool is_due() const { return state_ == JobState::queued && inputs == 0; }
  const std::optional<Problem>& problem() const { return problem_; }
  std::int64_t iterations() const { return last_.iteration; }
  double residual() const { return last_.norm; }
  const ResidualHistory& history() const { return history_; }
  const std::vector<service::SolvedColumn>& solved() const { return solved_; }
  const service::SolveBegun& begun() const { return begun_; }
  int restarts() const { return restarts_; }
  double queued_seconds() const { return (began_ > 0 ? began_ : ended_ > 0 ? ended_ : now()) - arrived_; }
  double running_seconds() const { return began_ > 0 ? (ended_ > 0 ? ended_ : now()) - began_ : 0; }
  std::uint64_t bytes() const { return rows * static_cast<std::uint64_t>(columns) * size_of(type); }
  /// One solver serves one job at a time.
  bool shares_solver_with(const SolveJob& other) const {
    return matrix_id == other.matrix_id && settings == other.settings && columns == other.columns;
  }

  /// The limit counts from now on.
  void arrive();
  /// The ranks get its commands from now on.
  void begin(std::uint64_t solve_number, std::uint64_t vector_number);
  void fail(const Problem& problem);
  /// Ends it between two iterations.
  void cancel();
  /// `told` is called once it has ended.
  void when_ended(std::function<void()> told);

  decltype(service::Command::what) next_command() override;
  double expected_seconds() const override { return has_begun_ ? length_.expected_seconds() : 0; }
  void take(const std::vector<service::Answer>& answers, const std::optional<Problem>& problem) override;

 private:
  void take_progress(const service::Progress& progress);
  void lose(const Problem& problem);
  void finish(const service::Progress& progress);
  void end(JobState state);
  void pass_limit();

  Alarm limit_;
  Actions actions_;
  JobState state_ = JobState::queued;
  std::optional<Problem> problem_;
  double arrived_ = 0, began_ = 0, ended_ = 0;
  bool has_begun_ = false, cancels_ = false, late_ = false;
  double kept_ = 0;     ///< when x was kept last
  bool keeps_ = false;  ///< the slice that is under way writes it
  int restarts_ = 0;
  SliceLength length_;
  ResidualHistory history_;
  service::Residual last_;
  service::SolveBegun begun_;
  std::vector<service::SolvedColumn> solved_;
  std::vector<std::function<void()>> told_;
};

}  // namespace shardmat::serve
