// The memory that a solve will take, foretold from the lengths of the rows: `shardmat solve --dry-run`.
//
// Threads: one thread of each rank.
#pragma once

#include <cstdint>
#include <string>

#include "comm/communicator.h"
#include "runtime/run/solve.h"

namespace shardmat {

/// Bytes are estimates of the rank with the most nonzeros.
struct SolveForecast {
  std::string matrix, type;
  std::int64_t rows = 0, nnz = 0, right_hand_sides = 1, node_block_size = 1;
  int ranks = 1;
  std::int64_t most_rows = 0, most_nnz = 0;                            ///< of a rank
  std::string solver, solver_why, preconditioner, preconditioner_why;  ///< why: empty if it was named
  std::int64_t vectors = 0;                                            ///< those of the method, b and x
  std::int64_t matrix_bytes = 0, vector_bytes = 0, preconditioner_bytes = 0;
  std::int64_t process_bytes = 0;    ///< of program, libraries and MPI, as they were found: they differ by installation
  std::int64_t setup_bytes = 0;      ///< only while the solver is set up: rows of the source, products of levels
  std::int64_t available_bytes = 0;  ///< of the host's memory, the least share of a rank

  /// What SolveReport::device_bytes will be.
  std::int64_t held() const { return matrix_bytes + vector_bytes + preconditioner_bytes; }
  /// What SolveReport::host_peak_bytes will be of a solve on the host.
  std::int64_t peak() const;
};

/// Opens the matrix and reads the lengths of its rows, no values (of a file that is read into memory, the values, too). Says
/// what is assumed where method or preconditioner are "auto", for they are chosen by values. Collective; the same on all
/// ranks, and the same error.
SolveForecast forecast_solve(Communicator& communicator, const SolveOptions& options);

std::string to_text(const SolveForecast& forecast);
std::string to_json(const SolveForecast& forecast);

}  // namespace shardmat
