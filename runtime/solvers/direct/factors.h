// The factors of a sparse matrix in host memory, by a library for direct solvers: MUMPS on any number of ranks, Eigen on
// one.
//
// To add a library: a file with its Factors, a line in choose_factors() and CMakeLists.txt.
//
// Threads: one thread of each rank. What is collective says so, and throws the same error on all ranks. A process does not
// use MUMPS in two threads at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/solvers/direct/report.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat {
class Context;
}

namespace shardmat::direct {

/// What is known of a matrix. A `definite` one that has a pivot below 0 is taken as `symmetric`.
enum class Kind { unsymmetric, symmetric, definite };

class Factors {
 public:
  virtual ~Factors() = default;
  /// Takes the values of `a`, a square matrix of single unknowns; its pattern is ordered anew only if it changed, nodes of
  /// `node_size` unknowns as a whole. Pivots of 0 may be left out (DirectReport::null_pivots). Checks the memory that the
  /// factors should take. Throws Error(resources), and Error(input) if the pattern or the values have no factors. After an
  /// error: only another factorise(). Collective.
  virtual void factorise(const multigrid::NodeRows& a, Kind kind, std::int64_t node_size) = 0;
  /// b becomes A⁻¹·b: this rank's rows in the order of the source, column by column. Collective.
  virtual void solve(std::span<double> b, int columns) = 0;
  /// Memory of this rank.
  virtual std::int64_t bytes() const = 0;
  const DirectReport& report() const { return report_; }

 protected:
  DirectReport report_;
};

/// False: choose_factors() throws. Not collective.
bool can_factorise(const Communicator& ranks);
/// MUMPS if this build has it and MPI runs, else Eigen on one rank. Throws Error(usage) with the package that is missing.
/// Collective.
std::unique_ptr<Factors> choose_factors(Context& context);

bool built_with_mumps();
bool built_with_eigen();
/// Null: this build has none.
std::unique_ptr<Factors> make_mumps(Context& context);
std::unique_ptr<Factors> make_eigen();

}  // namespace shardmat::direct
