// Times to solution in a scaling study: A·x = b of one matrix on 1, 2, 4 … ranks, with each preconditioner.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/run/solve.h"
#include "tools/cli/growing_matrix.h"

namespace shardmat::tools {

/// One matrix on some ranks with one preconditioner, solved several times.
struct SolveCase {
  std::string matrix, preconditioner;  ///< as asked for
  int ranks = 1;
  std::string why_not;                 ///< it did not fit, or did not converge; empty: it was measured
  std::vector<double> set_up, solve;   ///< seconds of each repetition, slowest rank; the set-up of solver and preconditioner
  std::string report;                  ///< JSON of the last repetition, as shardmat solve writes it; empty: not measured
  int host_ranks = 1, host_cores = 1;  ///< of the host whose ranks have the fewest cores each
  double efficiency = 0;               ///< of perfect scaling of the whole time from base_ranks
  int base_ranks = 0;                  ///< the fewest ranks that were measured with this preconditioner
  std::vector<std::string> notes;      ///< what makes its figures doubtful

  /// Taken out of `report` by read_figures().
  struct Figures {
    std::string solver, preconditioner, exchange, backend, device, type;
    std::int64_t rows = 0, nnz = 0, iterations = 0;
    int threads = 1;
    double an_iteration = 0, product = 0, exchange_alone = 0;  ///< seconds
    double residual = 0;                                       ///< ‖b − A·x‖ / ‖b‖, the worst column
    double bytes = 0;                                          ///< most of a rank for matrix, solver and vectors
  } figures;

  bool measured() const { return why_not.empty(); }
  bool weak() const { return grows(matrix); }
  std::vector<double> wholes() const;  ///< set-up and solve of each repetition
  double whole() const;                ///< median
};

/// Collective over the ranks of the case; fills in `one` on each of them. Figures are known on all ranks.
void measure_solves(SolveCase& one, const SolveOptions& options, int repetitions, Communicator& ranks);

/// Fills in efficiency, base_ranks and notes of each case.
void find_efficiencies(std::vector<SolveCase>& cases);

/// Lines of at most 125 characters; empty without cases.
std::string table(const std::vector<SolveCase>& cases);
nlohmann::ordered_json to_json(const SolveCase& one);
/// Throws nlohmann::json::exception if something is missing.
SolveCase solve_case_from_json(const nlohmann::ordered_json& json);

}  // namespace shardmat::tools
