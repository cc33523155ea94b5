// The residual at the start of conjugate gradients where M·r is left to the first iteration: the last start of a solve only
// looks at the residual, and needs no M·r.
#pragma once

#include "comm/exchange/sum_over_ranks.h"
#include "kernels/krylov/residual.h"
#include "runtime/solvers/loop/method.h"

namespace shardmat {

/// The norm needs no M·r, and M takes passes of its own.
constexpr bool may_be_late(krylov::Scaling scaling, krylov::Norm norm) {
  return scaling == krylov::Scaling::separate && norm == krylov::Norm::unpreconditioned;
}

/// `squares` = rᵀr and `rz` = rᵀ·M·r, this from its share in rᵀr of the residual before: NaN if that is not known. `sum_two`
/// sums from `rz` on. REQUIRES: squares == rz + columns; `share`: as many, which nothing else uses.
template <class T>
void sum_late_residual(const MethodInputs& in, const T* r, double* rz, double* squares, double* share, SumOverRanks& sum_two,
                       Stream& stream) {
  in.run(krylov::LateResidualSums<T>{r, rz, squares, share}, stream);
  sum_two(rz, stream);
  in.run_scalars(krylov::LateNaturalNorm{{}, rz, squares, share}, stream);
}

}  // namespace shardmat
