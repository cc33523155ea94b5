// The solves that the ranks have begun and not ended.
//
// Threads: that of the engine. Collective.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "runtime/service/engine/memories.h"
#include "runtime/service/engine/resident_matrix.h"
#include "runtime/service/engine/resident_vectors.h"
#include "runtime/service/engine/running_solve.h"
#include "runtime/service/wire/command.h"

namespace shardmat::service {

class Solves {
 public:
  /// REQUIRES: they outlive this object, and matrices outlive their solves (drop_all()).
  Solves(ResidentVectors& vectors, Memories& memories) : vectors_(vectors), memories_(memories) {}

  /// Throws on all ranks Error(usage) for a matrix that is not solvable, what ResidentSolvers::use() throws, and
  /// Error(resources). Then nothing has begun.
  SolveBegun begin(const Solve& command, ResidentMatrix& matrix);
  /// Throws on all ranks what the solve throws; then it has ended, and its vector is gone.
  Progress advance(const Slice& command);
  /// Does nothing if there is no such solve.
  void cancel(const Cancel& command);
  /// Leaves those of a matrix where they are: it is about to go.
  void drop_all(std::uint64_t matrix);

 private:
  struct Running {
    std::uint64_t matrix = 0, vector = 0;
    ResidentMatrix* on = nullptr;
    std::unique_ptr<RunningSolve> solve;
  };
  DistributedVector vector_of(const ResidentMatrix& matrix, std::int64_t columns) const;
  void forget(std::map<std::uint64_t, Running>::iterator solve);

  ResidentVectors& vectors_;
  Memories& memories_;
  std::map<std::uint64_t, Running> running_;  ///< by number
};

}  // namespace shardmat::service
