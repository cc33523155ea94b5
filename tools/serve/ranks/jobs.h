// The jobs of the service: those that wait, the ones that the ranks are at, and what ended jobs left. A job belongs to the
// tenant that asked for it.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tools/serve/ranks/service.h"
#include "tools/serve/ranks/solve_job.h"

namespace shardmat::serve {

class Jobs {
 public:
  Jobs(EventLoop& loop, Service& service) : loop_(loop), service_(service), later_(loop) {}
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  /// A job that is not in line yet; 429 if the tenant has too many that have not ended.
  std::variant<Problem, std::shared_ptr<SolveJob>> make(const std::shared_ptr<const Rights>& rights);
  /// Puts it in line. `b` and `guess`: vectors that are read first; null: the numbers are there, or there is no guess.
  void add(const std::shared_ptr<SolveJob>& job, const Vector* b, const Vector* guess);
  /// 404 if there is no such job for these rights.
  std::variant<Problem, std::shared_ptr<SolveJob>> find(const std::string& id, const Rights& rights) const;
  /// In the order of arrival.
  const std::map<std::uint64_t, std::shared_ptr<SolveJob>>& all() const { return jobs_; }
  /// Forgets a job that has ended. Its x goes, too.
  void erase(const SolveJob& job);
  /// Ends and forgets the jobs of owners that are no longer.
  void drop_unowned(const std::function<bool(const std::string& owner)>& exists);
  /// Something happened in the service: jobs may begin now, or never.
  void on_event(const ServiceEvent& event);

 private:
  void read(const std::shared_ptr<SolveJob>& job, const Vector& vector, std::uint64_t offset);
  void start_next();
  std::vector<std::shared_ptr<SolveJob>> due() const;
  bool start(const std::shared_ptr<SolveJob>& job);
  void slice(SolveJob& job);
  void left_ranks(SolveJob& job);
  void changed(SolveJob& job);
  void drop_oldest(const std::string& owner);

  EventLoop& loop_;
  Service& service_;
  std::map<std::uint64_t, std::shared_ptr<SolveJob>> jobs_;  ///< by number
  std::map<std::string, std::uint64_t> last_starts_;         ///< of each client, as numbers that rise
  std::uint64_t last_job_ = 0, last_solve_ = 0;
  std::map<std::string, double> told_;  ///< when the progress of a job was told last, by id
  Alarm later_;
};

}  // namespace shardmat::serve
