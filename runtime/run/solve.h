// The whole of `shardmat solve` as one call: open, load, set up, solve, write, report.
//
// Threads: one thread of each rank; solve() is collective.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/placement.h"
#include "partition/nodes/given_nodes.h"
#include "partition/readers/input_choices.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/run/advice.h"
#include "runtime/run/iteration_parts.h"
#include "runtime/run/product_report.h"
#include "runtime/solvers/direct/report.h"
#include "runtime/solvers/multigrid/report.h"
#include "runtime/solvers/solver.h"

namespace shardmat {

class Context;
class RowSource;

struct SolveOptions {
  std::string matrix;            ///< matrix file or generator specification, see open_matrix()
  bool allow_nonfinite = false;  ///< accept NaN and infinity among its values
  InputChoices choices{};        ///< what the user says about its file
  LoadOptions load;
  SolverOptions solver;  ///< right-hand sides: those of `load`
  BackendChoice backend = BackendChoice::automatic;
  int threads = 0;                      ///< host threads of each rank; 0: its share of the cores of its host
  std::string b = "ones";               ///< ones, zeros, random or a file
  NodeFiles nodes;                      ///< for multigrid
  std::string initial_guess = "zeros";  ///< the same
  std::uint64_t seed = 1;
  std::string output;      ///< file for x, in original row order; empty = none
  std::int64_t files = 1;  ///< how many files of hypre the output becomes (partition/files/atomic_files.h)
  /// Called on rank 0 before the solve, with the unknowns of a node. What it returns gets x after it, in original row order.
  std::function<std::function<void(const HostVector<double>& x)>(const RowSource&, std::int64_t node_block_size)> picture;
  bool advice = true;  ///< after a slow solve, tries whether another preconditioner needs fewer iterations
  SolveControl control;
};

struct SolveReport : IterativeReport {
  std::string solver_why, preconditioner_why;  ///< why they were chosen; empty if they were named
  std::optional<CgChoice> variant;             ///< of cg
  std::string solver, preconditioner, preconditioner_note, residual_norm, b, initial_guess;
  SolverOptions settings;
  SolveResult result;
  std::vector<IterationPart> parts;  ///< of an iteration; none without iterations, or if that failed
  std::string parts_failure;         ///< why they could not be measured
  /// Measured in the same run; 0 if the matrix of a rank may lie in the host's caches, so that memory is no limit.
  OverRanks copy_bandwidth;
  AdviceTrial advice;
  std::optional<MultigridReport> multigrid;  ///< of this preconditioner
  std::optional<DirectReport> direct;        ///< the same of factors
  std::string near_null_vectors;             ///< the file that they came from; empty: the source
};

/// Collective; the report is the same on all ranks. A solve that did not converge does not throw: the report says so, and
/// the last x is written. Any other failure throws the same Error on all ranks.
SolveReport solve(Communicator& communicator, const SolveOptions& options);
SolveReport solve(Context& context, const SolveOptions& options);

std::string to_text(const SolveReport& report);
std::string to_json(const SolveReport& report);

}  // namespace shardmat
