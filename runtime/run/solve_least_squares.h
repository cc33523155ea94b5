// `shardmat solve --solver lsqr|cgls` as one call: open, load, solve in the sense of least squares, write, report.
//
// Threads: one thread of each rank; solve_least_squares() is collective.
#pragma once

#include <string>

#include "runtime/run/solve.h"
#include "runtime/solvers/least_squares.h"

namespace shardmat {

struct LeastSquaresReport : ProductReport {
  std::string solver, b, initial_guess;
  std::string transpose;  ///< TransposedProduct::kernel()
  double rtol = 0;
  LeastSquaresResult result;
  OverRanks device_bytes, host_peak_bytes;
  std::string output;  ///< the file that was written, or empty
};

/// For a matrix of any shape: b has its rows, x its columns. Of the options, those of the loop that least squares has:
/// `solver.solver`, `solver.rtol` and `solver.max_iterations`. Throws Error(usage) for a preconditioner, several right-hand
/// sides, and pictures. Otherwise as solve().
LeastSquaresReport solve_least_squares(Communicator& communicator, const SolveOptions& options);

std::string to_text(const LeastSquaresReport& report);
std::string to_json(const LeastSquaresReport& report);

}  // namespace shardmat
