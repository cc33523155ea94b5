// The words that the options of a solver choose among: enumerations, their names, and what reads a name. A parse function
// throws Error(usage) naming the choices for any other text.
//
// Threads: any thread, several at a time.
#pragma once

#include <string>
#include <string_view>

#include "kernels/krylov/norm.h"

namespace shardmat {

/// Which form of conjugate gradients.
enum class CgVariant {
  automatic,         ///< the faster one, see choose_cg_variant()
  classic,           ///< two sums over the ranks an iteration
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
using ResidualNorm = krylov::Norm;
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
  /// most rows may be penalty rows. Leaves out rows that matter to other rows as much as these rows' own entries
  /// (kPenaltyCoupling): then the matrix is badly scaled.
  automatic,
};
/// "keep", "known", "auto".
std::string_view name(PenaltyRows choice);
PenaltyRows parse_penalty_rows(std::string_view text);

}  // namespace shardmat
