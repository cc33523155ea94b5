#include "runtime/solvers/method_requirements.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "kernels/base/error.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/method_choice.h"
#include "runtime/solvers/solver_settings.h"

namespace shardmat {
namespace {

void require_flexible(const MethodEntry& method, const SolverOptions& o) {
  if (!o.own_preconditioner) return;
  if (o.preconditioner != "none")
    throw Error(ErrorKind::usage,
                fmt::format("both {} and a preconditioner of the program are given; take one of them", o.preconditioner),
                "preconditioner");
  if (!method.flexible && !method.variants && !o.own_preconditioner->linear)
    throw Error(ErrorKind::usage,
                fmt::format("{} needs a preconditioner that stays the same, and one of the program may change; take cg or "
                            "fgmres, or say that it is linear",
                            method.name),
                "solver");
}

void require_same_cycle(const MethodEntry& method, const SolverOptions& o) {
  const bool symmetric_only = method.demands != Demands::nothing && !method.variants && !o.own_preconditioner;
  if (symmetric_only && is_half(o.preconditioning.multigrid.inner))
    throw Error(
        ErrorKind::usage,
        fmt::format("{} needs a symmetric preconditioner, and in f16 multigrid's cycle is not quite; take f32", method.name),
        "inner");
  if (method.flexible || o.own_preconditioner || !asks_for_varying_cycle(o)) return;
  const bool can = method.variants, fits = o.variant == CgVariant::automatic || o.variant == CgVariant::flexible;
  if (can && fits) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("{} needs a preconditioner that stays the same, and multigrid with the cycle K is not a linear map; "
                  "take {}, or the cycle V or W",
                  can ? fmt::format("the variant {} of {}", name(o.variant), method.name) : method.name,
                  can ? "the variant flexible" : "fgmres, or cg for a symmetric matrix"),
      "cycle");
}

void require_variant(const MethodEntry& method, CgVariant asked) {
  if (method.variants || asked == CgVariant::automatic) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} has no variants, and {} was asked for; leave it out, or take cg", method.name, name(asked)),
              "variant");
}

void require_norm(const MethodEntry& method, ResidualNorm norm) {
  if (std::find(method.norms.begin(), method.norms.end(), norm) != method.norms.end()) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("{} does not have the {} norm of the residual; take {}", method.name, name(norm), name(method.norms[0])),
      "residual_norm");
}

}  // namespace

SolverOptions paired(SolverOptions o) {
  for (const MethodEntry& method : methods()) {
    if (method.preconditioner.empty() || o.own_preconditioner) continue;
    if (o.solver == method.name && o.preconditioner == kAutomaticPreconditioner) o.preconditioner = method.preconditioner;
    if (o.solver == kAutomaticMethod && o.preconditioner == method.preconditioner) o.solver = method.name;
  }
  return o;
}

void require_pair(const MethodEntry& method, const SolverOptions& o) {
  if (method.demands != Demands::nothing && o.preconditioner == "ilu" && !o.own_preconditioner)
    throw Error(ErrorKind::usage,
                fmt::format("{} needs a symmetric preconditioner, and ilu is not; take ic, or gmres", method.name),
                "preconditioner");
  if (method.preconditioner.empty() || (o.preconditioner == method.preconditioner && !o.own_preconditioner)) return;
  throw Error(ErrorKind::usage,
              fmt::format("the solver {} takes the preconditioner {} only, and {} is given; leave it out, or take fgmres",
                          method.name, method.preconditioner,
                          o.own_preconditioner ? std::string("one of the program") : o.preconditioner),
              "preconditioner");
}

void require_sensible(const SolverOptions& o, const DistributedMatrix& matrix) {
  const auto refuse = [](const std::string& text, const char* setting) { throw Error(ErrorKind::usage, text, setting); };
  if (matrix.rows() != matrix.cols())
    refuse(fmt::format("a solver needs a square matrix; this one is {} × {}", matrix.rows(), matrix.cols()), "matrix");
  if (is_half(matrix.type()))
    refuse(fmt::format("a solver needs values in f64 or f32, not in {}", name(matrix.type())), "type");
  require_good_settings(o);
  if (o.null_vectors && o.null_space != NullSpace::automatic)
    refuse(
        fmt::format("vectors of the null space are given, and null_space is {}; leave one of them out", name(o.null_space)),
        "null_space");
  if (o.columns < 1 || o.columns > std::numeric_limits<int>::max() / 1024)
    refuse("the number of right-hand sides must be 1 or more, and at most two million", "right_hand_sides");
}

void require_takes(const MethodEntry& method, const SolverOptions& options) {
  require_norm(method, options.residual_norm);
  require_variant(method, options.variant);
  require_flexible(method, options);
  require_same_cycle(method, options);
}

bool takes(const MethodEntry& method, const SolverOptions& options) {
  try {
    require_takes(method, options);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace shardmat
