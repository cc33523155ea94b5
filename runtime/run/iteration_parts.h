// Where the time of a solver's iteration goes, and how many bytes each part of it must move.
//
// Threads: as Solver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/solvers/solver.h"

namespace shardmat {

struct IterationPart {
  std::string name;    ///< product, exchange, sums, preconditioner; vectors: what is left
  double count = 0;    ///< how often an iteration does it, on average; 1 for vectors
  double seconds = 0;  ///< of all of these, on the slowest rank; of vectors 0 if the others add up to the whole iteration
  double bytes = 0;    ///< that they move at least, on the rank with most; of an exchange: received. 0: none, or not known
};

/// The parts of an iteration that takes `seconds` on average of `iterations`. All but the vectors are measured alone, again
/// and again; a part that no iteration has is left out. `as_graph`: on GPUs replayed from graphs, as the solve was.
/// Overwrites the product's x(), and takes memory for two vectors. Collective; the same on all ranks.
std::vector<IterationPart> measure_iteration_parts(const Solver& solver, double seconds, std::int64_t iterations,
                                                   bool as_graph);

}  // namespace shardmat
