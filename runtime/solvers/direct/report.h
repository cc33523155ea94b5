// What a direct solver tells of its factors.
//
// Threads: values; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace shardmat {

/// The same on all ranks but for the seconds.
struct DirectReport {
  std::string library;           ///< and its version: "MUMPS 5.5.1"
  std::string kind;              ///< "L·D·Lᵀ without pivoting"
  std::string ordering;          ///< of the unknowns: "METIS"
  std::string note;              ///< what had to be done again, and why; else empty
  std::int64_t nonzeros = 0;     ///< of the factors, on all ranks
  std::int64_t bytes = 0;        ///< host memory of all ranks together
  std::int64_t null_pivots = 0;  ///< of 0, which are left out; rounding leaves others
  std::int64_t negative = 0;     ///< pivots below 0; of a matrix that is not symmetric 0
  bool definite = false;         ///< the matrix is symmetric, and all pivots are above 0
  double analysis_seconds = 0;   ///< of the ordering; new values take it as it is
  double factorise_seconds = 0;  ///< of the last factorisation
  double solve_seconds = 0;      ///< of all solves with the factors
  std::int64_t solves = 0;
};

}  // namespace shardmat
