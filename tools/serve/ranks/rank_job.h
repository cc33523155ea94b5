// One job of a client that the ranks work at: what was asked for, how far it has come, and what became of it. The ranks may
// be at several jobs at once (job_run.h).
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/serve/http/event_loop.h"
#include "tools/serve/ranks/dispatcher.h"
#include "tools/serve/state/arena_space.h"
#include "tools/serve/state/client_memories.h"
#include "tools/serve/state/vectors.h"

namespace shardmat::serve {

class JobRun;

enum class JobState { queued, running, done, failed, cancelled };

constexpr const char* state_name(JobState state) {
  constexpr const char* kNames[] = {"queued", "running", "done", "failed", "cancelled"};
  return kNames[static_cast<int>(state)];
}

/// Norms of residuals by iteration. Of a long job it keeps every second one, every fourth …
class ResidualHistory {
 public:
  struct Entry {
    std::int64_t iteration = 0;
    double norm = 0;  ///< the largest of all columns
  };
  void add(const Entry& entry);
  void clear() { *this = {}; }
  /// Forgets what came after this iteration.
  void end_at(std::int64_t iteration);
  const std::vector<Entry>& all() const { return all_; }

 private:
  static constexpr std::size_t kMost = 512;
  std::vector<Entry> all_;
  std::int64_t step_ = 1;  ///< iterations from one to the next
};

class RankJob : public std::enable_shared_from_this<RankJob> {
 public:
  /// `changed` is called when it came on, or its state changed.
  RankJob(EventLoop& loop, std::function<void(RankJob&)> changed) : limit_(loop), changed_(std::move(changed)) {}

  // As asked for.
  std::string id, kind, matrix, mass, settings;
  std::int64_t columns = 1;  ///< of X
  ValueType type = ValueType::f64;
  std::uint64_t rows = 0;
  double limit_seconds = std::numeric_limits<double>::infinity();  ///< from its arrival on
  std::shared_ptr<const Rights> rights;
  Client client;
  Priority priority = Priority::normal;
  bool has_b = false;                       ///< B is in the arena, or in a client's memory
  bool answers_x = false;                   ///< X is written to the arena when the job ends
  bool keeps_iterates = false;              ///< X is written there now and then, and a job that begins again goes on from it
  bool keeps_x = true;                      ///< its X stays whatever becomes of its request
  bool alone = true;                        ///< the ranks are at no other job in the same iterations
  bool always_merges = false;               ///< with others that wait, even if the ranks take longer then
  std::shared_ptr<ArenaSpace::Lease> b, x;  ///< where its numbers are; x: the first guess, then the last kept iterate
  std::shared_ptr<ArenaSpace::Lease> answer;  ///< X of a job that answers with it, while those who wait are told its end
  std::shared_ptr<ArenaSpace::Lease> kept_x;  ///< X of a job that has ended, for new ranks; null: there was no room
  std::shared_ptr<ArenaSpace::Lease> guess;   ///< the first guess of a job whose X has another number of columns; else null
  std::int64_t guess_columns = 0;             ///< of it
  bool has_guess = false;                     ///< x holds something to begin from
  std::shared_ptr<ClientMemory> memory;       ///< in which b and the first guess are if they have a place there
  std::optional<std::uint64_t> b_at, x0_at;   ///< in bytes

  // Where it is.
  int waiting = 0;  ///< requests that wait for its end
  int inputs = 0;   ///< vectors that are still to be read
  std::uint64_t number = 0;
  std::uint64_t end_number = 0;  ///< in the order in which jobs end; 0 until then
  std::uint64_t generation = 0;
  std::int64_t merged = 1;     ///< jobs that the ranks are at, or were at, together with this one
  bool freed_solvers = false;  ///< once it lacked memory, solvers that no job used were freed
  std::weak_ptr<JobRun> run;
  Vector result;  ///< what x becomes on the ranks
  bool has_result = false;

  JobState state() const { return state_; }
  bool ended() const { return state_ != JobState::queued && state_ != JobState::running; }
  bool is_due() const { return state_ == JobState::queued && inputs == 0; }
  /// It runs, and nobody has asked for its end.
  bool is_wanted() const { return state_ == JobState::running && !cancels_; }
  /// Its X is wanted in the arena at its end: as `answer`, or for new ranks.
  bool gives_x() const { return answers_x || stays(); }
  /// Its X stays as a vector when it has ended.
  bool stays() const { return keeps_x || waiting == 0; }
  /// Its next slice is its last one.
  bool is_late() const { return late_; }
  const std::optional<Problem>& problem() const { return problem_; }
  std::int64_t iterations() const { return last_.iteration; }
  double residual() const { return last_.norm; }
  const ResidualHistory& history() const { return history_; }
  const std::vector<service::JobColumn>& results() const { return results_; }
  /// What was set up, and how it ended: a JSON object; empty: it is not set up.
  const std::string& facts() const { return facts_; }
  double set_up_seconds() const { return set_up_seconds_; }
  int restarts() const { return restarts_; }
  double queued_seconds() const { return (began_ > 0 ? began_ : ended_ > 0 ? ended_ : now()) - arrived_; }
  double running_seconds() const { return began_ > 0 ? (ended_ > 0 ? ended_ : now()) - began_ : 0; }
  /// Of the first columns of b and of what x begins with; nothing: there is none.
  std::optional<service::Place> b_place() const;
  std::optional<service::Place> guess_place() const;
  std::uint64_t bytes() const { return rows * static_cast<std::uint64_t>(columns) * size_of(type); }
  /// One job of these works at the matrix after the other, or they are merged.
  bool shares_solver_with(const RankJob& other) const {
    return matrix == other.matrix && kind == other.kind && settings == other.settings;
  }
  /// The ranks may iterate with the columns of both at once.
  bool may_merge_with(const RankJob& other) const;

  /// The limit counts from now on.
  void arrive();
  void fail(const Problem& problem);
  /// Ends it between two iterations.
  void cancel();
  /// `told` is called once it has ended.
  void when_ended(std::function<void()> told);

  // For its run.

  void begin(const std::shared_ptr<JobRun>& with, std::uint64_t vector_number);
  /// Its columns of `progress` are those from `first` on.
  void take(const service::Progress& progress, std::size_t first);
  void finish(std::span<const service::JobColumn> columns);
  /// The run is over without a result. `freed`: memory that it lacked was freed, so that it may begin again.
  void lose(const Problem& problem, bool freed = false);
  void finish_cancel() { end(JobState::cancelled); }

 private:
  bool has_company() const;
  void wait_again();
  void end(JobState state);
  void pass_limit();

  Alarm limit_;
  std::function<void(RankJob&)> changed_;
  JobState state_ = JobState::queued;
  std::optional<Problem> problem_;
  double arrived_ = 0, began_ = 0, ended_ = 0;
  bool cancels_ = false, late_ = false;
  int restarts_ = 0;
  ResidualHistory history_;
  ResidualHistory::Entry last_;
  std::string facts_;
  double set_up_seconds_ = 0;
  std::vector<service::JobColumn> results_;
  std::vector<std::function<void()>> told_;
};

}  // namespace shardmat::serve
