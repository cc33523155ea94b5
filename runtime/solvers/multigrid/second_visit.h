// The cycles W and K visit a coarse level twice: the second time for the residual that the first visit leaves.
//
// Threads: as Product. Everything is collective.
#pragma once

#include <cstdint>
#include <string_view>

#include "comm/exchange/sum_over_ranks.h"
#include "kernels/krylov/multigrid_steps.h"
#include "runtime/context/context.h"
#include "runtime/solvers/multigrid/operator.h"

namespace shardmat::multigrid {

/// What becomes of the x of both visits.
enum class Combination {
  sum,       ///< the cycle W
  energy,    ///< the cycle K of symmetric matrices: two steps of flexible conjugate gradients
  residual,  ///< the cycle K of other matrices: two steps of GCR
};

/// Memory and passes of a second visit (Y. Notay, P. Vassilevski, Recursive Krylov-based multigrid cycles, Numer. Linear
/// Algebra Appl. 15, 2008).
class SecondVisit {
 public:
  /// For a level with the matrix `a` and the vectors r and x, which outlive this object; `owners`: ranks that have rows of
  /// it. Collective.
  SecondVisit(const Operator& a, const krylov::Passes& passes, Context& context, ValueType type, void* r, void* x,
              Combination combination, int owners);

  /// Before the first visit: keeps r.
  void begin(Stream& stream) const;
  /// After the first visit: keeps its x; r becomes the residual of what is taken of it.
  void turn(Stream& stream) const;
  /// After the second visit: x becomes the combination of both.
  void end(Stream& stream) const;
  std::int64_t device_bytes() const;
  std::int64_t visit_bytes() const { return 2 * a_.compulsory_bytes(0) + 17 * a_.x_bytes(); }

 private:
  template <class F>
  void with_type(const F& f) const;

  const Operator& a_;
  const krylov::Passes& passes_;
  ValueType type_;
  std::int64_t rows_;
  void *r_, *x_;
  Combination combination_;
  bool on_one_rank_;  ///< its sums are those of all
  Buffer kept_r_, first_, a_first_, a_second_, sums_;
  mutable SumOverRanks over_ranks_;
};

}  // namespace shardmat::multigrid
