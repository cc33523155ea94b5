// Which method and preconditioner a solver takes that is told to choose ("auto").
//
// Threads: as Solver. Everything is collective and gives the same result on all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/solver.h"

namespace shardmat {

inline constexpr std::string_view kAutomaticMethod = "auto", kAutomaticPreconditioner = "auto";

struct MethodChoice {
  const MethodEntry* method = nullptr;
  std::string why;
  bool symmetric = false;
};

/// True if all entries of the diagonal are above 0, but for those of rows that are 0 altogether. Throws as
/// DistributedMatrix::diagonal().
bool has_positive_diagonal(DistributedMatrix& matrix, Stream& stream);

/// cg for a symmetric matrix with a positive diagonal, minres for any other symmetric one, else gmres; fgmres where the
/// program has a preconditioner of its own, or `made`, that of the options, is no linear map. `made`: null for "auto".
/// Whether a matrix is symmetric is seen as in symmetry.h; of a positive diagonal it does not follow that the matrix is
/// positive definite.
MethodChoice choose_method(const Product& product, const SolverOptions& options, bool positive_diagonal,
                           const Preconditioner* made);

/// Matrices with fewer rows get block_jacobi from "auto": multigrid would not pay.
inline constexpr std::int64_t kFewRowsForMultigrid = 5000;

/// Larger matrices get no factors from "auto": those of a body in three dimensions may take minutes and all memory.
inline constexpr std::int64_t kMostRowsForFactors = 200'000;

/// True if a cycle of multigrid is asked for that is no linear map.
bool asks_for_varying_cycle(const SolverOptions& options);

/// A method with a preconditioner.
struct SolverChoice {
  const MethodEntry* method = nullptr;
  std::string_view preconditioner;
  std::string why;  ///< this preconditioner
  /// Iterations in which the residual must halve, if another choice follows.
  std::int64_t patience = 0;
  /// For multigrid that made no headway with constants: its vectors are found by cycles.
  bool adaptive = false;
  /// PreconditionerOptions::absolute; none: as the solver's other choices have it.
  std::optional<bool> absolute = {};
};

/// For options whose preconditioner is "auto": what is tried, one after the other, each if those before it fail. `method`:
/// choose_method(), or the method that was named. Begins with bicgstab and ilu if the matrix is not symmetric and has a
/// positive diagonal. Then with multigrid where the diagonal is positive, the matrix has some thousand rows and lies in host
/// memory, and the method fits: with fgmres in place of gmres if the matrix is not symmetric. With field_split where some
/// rows have a diagonal of 0 or below, as saddle points do. Where nodes of 2, 3 or 6 unknowns make elasticity likely, and
/// nobody says where they lie, multigrid gets more patience, and then adaptive vectors. If the method was not named either,
/// the last one is the factors of a matrix of at most kMostRowsForFactors rows; they also follow any other choice that would
/// take hundreds of iterations more (headway.h).
std::vector<SolverChoice> choose_solvers(DistributedMatrix& matrix, const SolverOptions& options, const MethodEntry& method,
                                         bool symmetric_positive, bool positive_diagonal);

/// True if the matrix is stored as a symmetric one, or the options say that it is.
bool is_known_symmetric(const Product& product, const SolverOptions& options);

}  // namespace shardmat
