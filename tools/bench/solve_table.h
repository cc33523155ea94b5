// The table of `bench solve`: a line for each solver of a system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/result_table.h"
#include "tools/bench/solve_answers.h"

namespace shardmat::tools {

/// A solver's answers, one of each round.
struct SolverAnswers {
  std::string name, preconditioner, detail;
  bool own = false;
  bool sets_up = true;  ///< its set-up and refresh are timed
  std::vector<TimedAnswer> answers;
  std::vector<double> history;  ///< Solving::history()
};

/// A residual that is larger than the tolerance by more than a tenth is wrong. With the tolerance 0 none is.
bool is_right(double residual, double rtol);

/// Without rows.
ResultTable solve_table(double rtol, bool cpu_clock);
/// Adds the lines of a system. A solver is compared with ours of the same preconditioner, ours with the first of ours.
void add_rows(ResultTable& table, const std::string& matrix, std::int64_t rows, std::int64_t nnz,
              const std::vector<SolverAnswers>& solvers, double rtol);

}  // namespace shardmat::tools
