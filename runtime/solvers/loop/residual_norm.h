// The norm of the options as the passes over vectors take it.
#pragma once

#include "kernels/krylov/norm.h"
#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

inline krylov::Norm norm_of_passes(ResidualNorm norm) {
  switch (norm) {
    case ResidualNorm::unpreconditioned:
      return krylov::Norm::unpreconditioned;
    case ResidualNorm::preconditioned:
      return krylov::Norm::preconditioned;
    case ResidualNorm::natural:
      break;
  }
  return krylov::Norm::natural;
}

}  // namespace shardmat
