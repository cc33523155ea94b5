// The jobs that the ranks have begun and not ended.
//
// Threads: that of the engine. Collective.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/service/engine/kind_of_job.h"
#include "runtime/service/engine/memories.h"
#include "runtime/service/engine/resident_vectors.h"
#include "runtime/service/engine/running_job.h"

namespace shardmat::service {

class RunningJobs {
 public:
  /// REQUIRES: they outlive this object, and matrices outlive their jobs (drop_all()).
  RunningJobs(ResidentVectors& vectors, Memories& memories) : vectors_(vectors), memories_(memories) {}

  /// Throws on all ranks Error(usage) for a matrix that is not solvable, and Error(resources). Then nothing has begun.
  Begun begin(const Begin& command, ResidentMatrix& matrix, ResidentMatrix* mass);
  /// Throws on all ranks what the job throws; then it has ended, and its vectors are gone.
  Progress advance(const Slice& command);
  /// Does nothing if there is no such job.
  void cancel(const Cancel& command);
  /// Leaves those of a matrix where they are: it is about to go.
  void drop_all(std::uint64_t matrix);

 private:
  struct Running {
    Begin begun;
    ResidentMatrix* on = nullptr;
    std::unique_ptr<RunningJob> job;
    bool told_solvers = false;
  };
  DistributedVector make_block(const Begin& command, const ResidentMatrix& matrix, const Place JobPart::*first,
                               std::int64_t columns) const;
  void drop_vectors(const Begin& begun);
  void give_x(const Running& running, const std::vector<std::uint64_t>& to);
  void keep_x(const Running& running);

  ResidentVectors& vectors_;
  Memories& memories_;
  const std::vector<KindOfJob> kinds_ = kinds_of_jobs();
  std::map<std::uint64_t, Running> running_;  ///< by number
};

}  // namespace shardmat::service
