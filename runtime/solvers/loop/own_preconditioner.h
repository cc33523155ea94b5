// A preconditioner of the program: functions that the solver calls. It may change from one iteration to the next with fgmres
// and with the flexible variant of cg; other methods take it if it says that it is linear.
//
//   shardmat::SolverOptions options;
//   options.solver = "cg";
//   options.own_preconditioner.emplace();
//   options.own_preconditioner->name = "my multigrid";
//   options.own_preconditioner->apply = [&](const auto& r, const auto& z, shardmat::Stream& stream) { … };
//
// Threads: the solver's. Its functions are called on all ranks, in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/base/dense.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat {

struct OwnPreconditioner {
  std::string name = "own";  ///< for reports
  /// Called once, by the Solver's constructor, while the matrix still has its host rows. May be empty.
  std::function<void(DistributedMatrix& matrix, std::int64_t columns, Stream& stream)> set_up;
  /// Called by Solver::refresh(), after the matrix got new values. May be empty.
  std::function<void(Stream& stream)> refresh;
  /// z = M·r, in stream order: what it puts on the stream begins after r is there, and z is taken after it. Both are in the
  /// memory of the matrix's device, row-major, of this rank's rows in the order of DistributedMatrix::y_rows(), with a
  /// column for each right-hand side, of the matrix's sum_type(). They do not overlap; z holds anything before. Required.
  /// On a GPU it is called some more times after the last iteration: the host sees the end late. May multiply by products of
  /// its own, not by the solver's. If it throws on some ranks only, where no other rank waits
  /// for them, all ranks throw that error; the solver stays usable.
  std::function<void(const ConstDense& r, const Dense& z, Stream& stream)> apply;
  /// M is the same linear map in every application: any method takes it.
  bool linear = false;
  /// `apply` only puts work on the stream, always the same, allocates nothing, waits for nothing and throws nothing: GPUs
  /// may record it in a graph. Otherwise no graph is used, and the ranks agree on errors after each call.
  bool capturable = false;
};

/// A preconditioner that works in host memory, and knows nothing of devices and row maps: z = M·r of the rows that this rank
/// gave, in its order (DistributedVector::own()), row-major, a column for each right-hand side, of the matrix's sum_type().
/// May throw on some ranks only: all ranks throw that error then.
OwnPreconditioner host_preconditioner(std::function<void(const ConstDense& r, const Dense& z)> apply);

/// `held`: rows in which z becomes 0, or null. Calls set_up. Collective; errors of the functions are thrown by all ranks.
/// Throws Error(usage) without `apply`.
std::unique_ptr<Preconditioner> make_own_preconditioner(DistributedMatrix& matrix, const OwnPreconditioner& own,
                                                        std::int64_t columns, const HeldRows* held = nullptr);

}  // namespace shardmat
