// A job that can be paused, with all that it has come to. It has a thread of its own, which runs only while advance() waits
// for it: one of both threads works at a time, so they share the communicator, the stream and the matrix.
//
// While a job is set up it pauses between phases on which all ranks agree, whenever its turn has taken long enough on one of
// them. Afterwards its work says where it may pause.
//
// Threads: that of the engine, but for what the work calls. Collective: constructor, advance().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/base/timer.h"
#include "runtime/context/context.h"
#include "runtime/service/engine/kind_of_job.h"
#include "runtime/service/wire/command.h"

namespace shardmat::service {

class RunningJob {
 public:
  /// Does not begin yet. REQUIRES: the context outlives it.
  RunningJob(Context& context, std::unique_ptr<JobWork> work);
  /// A job that has not ended is left where it is.
  ~RunningJob();
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  /// Goes on until the job has paused `pauses` times more, has used up its turn, or has ended; `ends`: it ends as soon as it
  /// can, without results if it is still being set up. Throws what the work throws.
  Progress advance(std::int64_t pauses, bool ends);
  bool is_set_up() const { return is_set_up_; }
  const JobWork& work() const { return *work_; }

  // What follows is for the work, on the thread of the job.

  /// All is set up, and iterations follow. Others get their turn. `facts`: Progress::facts.
  void set_up(std::string facts);
  /// After an iteration. False: the job is to end with what it has.
  bool pause();
  /// The same as a question between pauses.
  bool ends() const { return ends_; }
  /// Norms of the columns' residuals.
  void note(std::int64_t iteration, std::vector<double> norms);
  /// True while exceptions leave the work because the job is left where it is.
  bool is_abandoned() const { return abandoned_; }

 private:
  void run() noexcept;
  void take_turns();
  void pause_if_late();

  Context& context_;
  std::unique_ptr<JobWork> work_;
  std::mutex mutex_;
  std::unique_lock<std::mutex> lock_{mutex_, std::defer_lock};  ///< of the job's thread
  std::condition_variable turn_;
  bool works_ = false;  ///< the job's thread has its turn
  bool is_set_up_ = false, ended_ = false, ends_ = false, abandoned_ = false;
  std::int64_t left_ = 0;
  double set_up_seconds_ = 0;
  Timer since_;  ///< the turn began
  Progress progress_;
  std::exception_ptr error_;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace shardmat::service
