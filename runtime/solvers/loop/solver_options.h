// What a solve is asked for. A parse function of a name throws Error(usage) naming the choices for any other text.
//
// Ownership: options and controls keep what they are given by value or by shared pointers.
// Threads: values that a program copies as it likes. Options are the same on all ranks. Nothing is collective.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/progress.h"
#include "kernels/base/types.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/solvers/loop/preconditioner_options.h"

namespace shardmat {

class DistributedVector;

/// Which form of conjugate gradients.
enum class CgVariant {
  automatic,         ///< the faster one of classic and single_reduction; flexible where it is needed
  classic,           ///< two or three sums over the ranks an iteration
  single_reduction,  ///< one sum; its passes read and write a vector more (two with a preconditioner of passes of its own)
  flexible,          ///< as classic, and a preconditioner may be a little unsymmetric, or change
};
/// "auto", "classic", "single_reduction", "flexible".
std::string_view name(CgVariant variant);
CgVariant parse_cg_variant(std::string_view text);

/// The variant that was taken.
struct CgChoice {
  CgVariant variant = CgVariant::classic;
  std::string why;
};

/// How GMRES makes its basis orthogonal.
enum class GramSchmidt {
  classical,  ///< once, and a second time where that is needed: one sum over the ranks a step, or two
  modified,   ///< once (MGS): as many sums as the basis has vectors
};
/// "classical", "modified".
std::string_view name(GramSchmidt choice);
GramSchmidt parse_gram_schmidt(std::string_view text);

/// The norm of the residual that decides whether a solver is done.
enum class ResidualNorm {
  unpreconditioned,  ///< ‖r‖
  preconditioned,    ///< ‖M·r‖
  natural,           ///< √(rᵀM·r)
};
/// "unpreconditioned", "preconditioned", "natural".
std::string_view name(ResidualNorm norm);
ResidualNorm parse_residual_norm(std::string_view text);

/// The vectors that a matrix, and its transpose, maps to 0.
enum class NullSpace {
  none,
  constant,   ///< multiples of (1, …, 1)
  rigid,      ///< rigid-body motions of connected bodies without supports
  automatic,  ///< what multigrid finds when it is set up: constants or rigid-body motions of connected bodies
};
/// "none", "constant", "rigid", "auto".
std::string_view name(NullSpace space);
NullSpace parse_null_space(std::string_view text);

/// What becomes of rows that state a known value by a huge diagonal (penalty_rows.h).
enum class PenaltyRows {
  keep,  ///< rows like all others
  /// The caller knows that there are some. Compares with the smallest diagonal that is not 0 in place of the median, takes
  /// any number of rows, whatever they do to other rows, and refuses a matrix without any.
  known,
  /// Compares with the median of the diagonals, and if that finds none, with the smallest one that is not 0: on a small mesh
  /// most rows may be penalty rows. Does not take rows that couple to other rows as strongly as these rows' own entries
  /// (kPenaltyCoupling): then the matrix is badly scaled.
  automatic,
};
/// "keep", "known", "auto".
std::string_view name(PenaltyRows choice);
PenaltyRows parse_penalty_rows(std::string_view text);

struct SolverOptions {
  std::string solver = "auto";          ///< as `shardmat solve --help` lists them; "auto": chosen by the matrix
  std::string preconditioner = "auto";  ///< the same
  PreconditionerOptions preconditioning;
  /// Replaces `preconditioner`, which must be "none" or "auto". For cg, fgmres, and any method if it is linear.
  std::optional<OwnPreconditioner> own_preconditioner;
  std::optional<double> rtol;  ///< of ‖b‖; none: default_rtol() of the matrix's type
  double atol = 0;             ///< of the residual itself
  /// Ends when the residual is above this times the larger of ‖b‖ and the first residual.
  double divergence_tolerance = 1e5;
  std::int64_t max_iterations = 10'000;  ///< of a solve, whatever "auto" chooses one after the other
  std::int64_t restart = 30;             ///< of gmres and fgmres
  GramSchmidt gram_schmidt = GramSchmidt::classical;
  /// For cg. automatic: the constructor measures both variants. If the plan must be reproducible, a rule decides without
  /// measuring.
  CgVariant variant = CgVariant::automatic;
  ResidualNorm residual_norm = ResidualNorm::unpreconditioned;
  /// What A maps to 0. It is removed from b, from x and from the result of the preconditioner. A b with a part in it is
  /// solved in the sense of least squares, and tolerances refer to b without that part. automatic: looked for by multigrid,
  /// and for small matrices if the preconditioner is chosen; else as none.
  NullSpace null_space = NullSpace::automatic;
  /// Vectors that span what A and its transpose map to 0, in place of null_space, which must be automatic then. They need
  /// not be orthogonal.
  std::shared_ptr<const NearNullVectors> null_vectors;
  /// Rows that state a known value by a huge diagonal. Their x is b_i / a_ii; the method works on the other rows and
  /// columns, with b − A·x of the known values. Norms and residuals are those of the other rows.
  PenaltyRows penalty_rows = PenaltyRows::automatic;
  bool assume_symmetric = false;  ///< does not check that the matrix is symmetric
  std::int64_t columns = 1;       ///< right-hand sides that are solved at once
  bool graph = true;              ///< replays iterations from a CUDA graph where the exchange allows it
  ProductOptions product;         ///< its number of columns is set by the solver
};

/// What a solve does while it runs. Choices of "auto" that follow one another count as one solve.
struct SolveControl {
  Progress progress;
  /// Also computes ‖b − A·x‖₂ after every iteration; gmres and fgmres form x for it. This takes one more product an
  /// iteration and the device memory of three vectors. The host waits for each iteration, so no CUDA graph is used. The same
  /// on all ranks. The history and the bits of x do not change.
  bool true_residuals = false;
  /// Called on every rank now and then with the number of iterations and the norm of each column's residual. true_norms has
  /// ‖b − A·x‖₂ of each column; empty without true_residuals.
  std::function<void(std::int64_t iterations, const std::vector<double>& norms, const std::vector<double>& true_norms)>
      monitor;
  /// Called on every rank after each iteration with the x so far, if true_residuals is set; has no value on feeders.
  std::function<void(std::int64_t iterations, const DistributedVector& x)> watch;
  /// Asked on every rank now and then; true on any rank ends the solve.
  std::function<bool()> stop;
  /// Called on every rank after each iteration, on a GPU after each launch of some. It may do other work of the same ranks
  /// meanwhile, and come back much later: x, the matrix and the solver must not change. False ends the solve. The same on
  /// all ranks.
  std::function<bool()> pause;
};

/// 1e-8; 1e-5 in f32, where rounding errors keep the residual of many an easy system above 1e-7.
double default_rtol(ValueType type);

}  // namespace shardmat
