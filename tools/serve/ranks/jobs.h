// The jobs of the service: those that wait, the ones that the ranks are at, and what ended jobs left. A job belongs to the
// tenant that asked for it.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/serve/ranks/job_run.h"
#include "tools/serve/ranks/rank_job.h"
#include "tools/serve/ranks/service.h"

namespace shardmat::serve {

class Jobs {
 public:
  Jobs(EventLoop& loop, Service& service);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  /// A job that is not in line yet; 429 if the tenant has too many that have not ended, in line or not.
  std::variant<Problem, std::shared_ptr<RankJob>> make(const std::shared_ptr<const Rights>& rights);
  /// Puts it in line. `b` and `guess`: vectors that are read first; null: the numbers are there, or there is no guess.
  void add(const std::shared_ptr<RankJob>& job, const Vector* b, const Vector* guess);
  /// Writes x of a job that is done into a client's memory, from this byte on, unless `client` has gone before the ranks
  /// begin. `done` is called in any case.
  void give_x(const std::shared_ptr<RankJob>& job, const std::shared_ptr<ClientMemory>& memory, std::uint64_t at,
              const std::weak_ptr<void>& client, std::function<void(const std::optional<Problem>&)> done);
  /// 404 if there is no such job for these rights.
  std::variant<Problem, std::shared_ptr<RankJob>> find(const std::string& id, const Rights& rights) const;
  /// In the order of arrival.
  const std::map<std::uint64_t, std::shared_ptr<RankJob>>& all() const { return jobs_; }
  /// Forgets a job that has ended. Its x goes, too.
  void erase(const RankJob& job);
  /// Ends and forgets the jobs of owners that are no longer.
  void drop_unowned(const std::function<bool(const std::string& owner)>& exists);
  /// The service ends: fails the jobs that have not ended and that no request waits for, and says so in the log.
  void end_unattended();
  /// Something happened in the service: jobs may begin now, or never.
  void on_event(const ServiceEvent& event);

 private:
  void read(const std::shared_ptr<RankJob>& job, const Vector& vector, std::uint64_t offset);
  void start_next();
  std::vector<std::shared_ptr<RankJob>> due() const;
  void keep_x(const std::shared_ptr<RankJob>& job);
  bool drop_kept_x();
  void restore_all(const std::function<void()>& done);
  void restore(const std::shared_ptr<RankJob>& job, const std::function<void()>& done);
  void take_restored(RankJob& job, const std::optional<Problem>& problem);
  bool start(const std::shared_ptr<RankJob>& job);
  /// The matrix of this name that a job may use now; nothing: it must wait, or has failed.
  Matrix* usable(RankJob& job, const std::string& name);
  std::vector<std::shared_ptr<RankJob>> merged_with(const std::shared_ptr<RankJob>& job) const;
  void note_pace(const JobRun& run);
  bool pays(const JobRun::Solver& solver, std::size_t jobs) const;
  void gather_after(const JobRun& run);
  bool waits_for_more(const JobRun::Solver& solver, std::size_t jobs);
  std::optional<Problem> why_gone(const JobRun& run) const;
  std::shared_ptr<ArenaSpace::Lease> room_for_x(const RankJob& job);
  void slice(JobRun& run);
  void left_ranks(JobRun& run);
  void changed(RankJob& job);
  void drop_oldest(const std::string& owner);
  bool is_wanted(const std::string& matrix) const;

  EventLoop& loop_;
  Service& service_;
  std::map<std::uint64_t, std::shared_ptr<RankJob>> jobs_;  ///< in line, or ended; by number
  std::vector<std::weak_ptr<RankJob>> made_;                ///< those that have not ended, also before they are in line
  std::map<std::string, std::uint64_t> last_starts_;        ///< of each client: numbers of runs
  std::map<std::uint64_t, std::shared_ptr<JobRun>> runs_;   ///< that the ranks are at, by number
  std::uint64_t last_job_ = 0, last_run_ = 0, last_end_ = 0;
  /// Until when the next run of a solver waits for more jobs to merge, and for how many.
  struct Gathering {
    double until = 0;
    std::size_t jobs = 0;
  };
  std::map<JobRun::Solver, Gathering> gatherings_;
  /// Seconds of an iteration with one column and with those of merged jobs, as observed; 0: not known.
  struct Pace {
    double alone = 0, merged = 0;
    int runs = 0;  ///< since jobs were merged
  };
  std::map<JobRun::Solver, Pace> paces_;
  std::map<std::string, double> told_;  ///< when the progress of a job was told last, by id
  Alarm later_, gathered_;
};

}  // namespace shardmat::serve
