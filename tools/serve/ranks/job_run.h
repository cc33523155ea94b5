// What the ranks are at for one job, or for several that are merged: the commands of their slices, and who gets what of the
// answers.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tools/serve/ranks/dispatcher.h"
#include "tools/serve/ranks/held_solvers.h"
#include "tools/serve/ranks/rank_job.h"

namespace shardmat::serve {

/// How many pauses the next slice of a job has, so that it takes about kSeconds.
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

class JobRun final : public LongWork, public std::enable_shared_from_this<JobRun> {
 public:
  /// What becomes of it; the registry does it (jobs.h).
  struct Actions {
    std::function<void(JobRun&)> goes_on;                        ///< its next slice is due
    std::function<void(JobRun&)> left_ranks;                     ///< the ranks are at it no more
    std::function<std::optional<Problem>(const JobRun&)> check;  ///< why the ranks cannot be at it any more
    std::function<void(std::uint64_t vector)> drop_vector;       ///< of a job that ended before the others
    /// It lacked memory: Service::free_memory().
    std::function<bool(const Problem& problem, bool& freed_solvers, bool unloads)> free_memory;
    /// Room for another x of a job; null: there is none now.
    std::function<std::shared_ptr<ArenaSpace::Lease>(const RankJob& job)> room_for_x;
  };

  /// Jobs that may merge with each other. `width`: columns that the ranks iterate with at once.
  JobRun(std::uint64_t number, std::uint64_t matrix_id, std::uint64_t mass_id, std::int64_t width,
         std::vector<std::shared_ptr<RankJob>> jobs, Actions actions);

  std::uint64_t matrix_id() const { return matrix_id_; }
  std::uint64_t mass_id() const { return mass_id_; }
  const RankJob& first() const { return *parts_.front().job; }
  std::size_t jobs() const { return parts_.size(); }
  /// What one run at a time may use: matrix, kind and settings.
  using Solver = std::tuple<std::uint64_t, std::string, std::string>;
  Solver solver() const { return {matrix_id_, first().kind, first().settings}; }
  /// Since it began.
  double seconds() const { return now() - began_; }
  /// Of an iteration; 0: there was none.
  double seconds_of_iteration() const { return iterations_ > 0 ? iterating_ / static_cast<double>(iterations_) : 0; }
  /// It ended as its solver could not be made: not of so many columns, or not at all.
  bool lacks_solver() const { return lacks_solver_; }
  /// Who is charged for the next slice: one after the other.
  const Client& next_client();
  /// True if the ranks are at another job, too, that somebody wants.
  bool has_others(const RankJob& job) const;
  /// Changes what is known of the solvers of its matrix, if the ranks have told more.
  void tell_solvers(HeldSolvers& solvers);

  /// The ranks get its commands from now on. A number for each job's vector.
  void begin(const std::vector<std::uint64_t>& vectors);
  /// It ends without results, before its next slice.
  void lose(const Problem& problem);

  std::optional<Problem> check() const override { return actions_.check(*this); }
  decltype(service::Command::what) next_command() override;
  double expected_seconds() const override { return has_begun_ ? length_.expected_seconds() : 0; }
  void take(const std::vector<service::Answer>& answers, const std::optional<Problem>& problem) override;

 private:
  struct Part {
    std::shared_ptr<RankJob> job;
    // The ranks use these even if the job has ended.
    std::shared_ptr<ArenaSpace::Lease> b, x, guess;
    /// Another place for x, once there is something in x to begin from that a lost rank must not spoil.
    std::shared_ptr<ArenaSpace::Lease> spare;
    std::shared_ptr<ArenaSpace::Lease> written;  ///< by the slice that is under way
    std::shared_ptr<ClientMemory> memory;
    service::Place b_place, guess_place;
    std::uint64_t vector = 0;
  };
  service::Begin begin_command() const;
  bool may_keep();
  void take_begun(const std::vector<service::Answer>& answers);
  void take_progress(const std::vector<service::Answer>& answers);
  void finish(const service::Progress& progress);
  bool frees_memory(const Problem& problem) const;
  void leave();

  std::uint64_t number_, matrix_id_, mass_id_;
  std::int64_t width_;
  std::vector<Part> parts_;
  Actions actions_;
  std::size_t charged_ = 0;  ///< slices so far
  bool has_guess_ = false, has_begun_ = false, is_set_up_ = false, has_left_ = false, lacks_solver_ = false;
  double began_ = 0, iterating_ = 0;  ///< seconds
  std::int64_t iterations_ = 0;
  double kept_ = 0;                    ///< when x was kept last, or had no room
  bool keeps_ = false;                 ///< the slice that is under way writes it
  std::vector<service::Answer> told_;  ///< answers about solvers that the matrix does not know yet
  bool spoilt_ = false;                ///< the ranks have dropped its solver
  SliceLength length_;
};

}  // namespace shardmat::serve
