// Incomplete factors (L + I)·D·(I + U) of a square matrix of blocks in host memory, and the solves with them. L is strictly
// lower, U strictly upper, D has dense blocks. Of a symmetric matrix U is Lᵀ, to the last bit.
//
// Threads: one thread at a time; nothing here is collective. Results depend on the order, not on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/base/dense.h"
#include "kernels/base/types.h"
#include "kernels/triangles/slices.h"
#include "runtime/solvers/incomplete/order.h"
#include "runtime/solvers/incomplete/pattern.h"

namespace shardmat::incomplete {

class Factors {
 public:
  virtual ~Factors() = default;
  /// Takes the values of `a`, whose pattern stays that of find_pattern(). Where a pivot is 0 (of a symmetric matrix: not
  /// above 0), factorises A + shift·(sums of the magnitudes of the rows) in place of A, with a larger shift until all pivots
  /// are good. Throws Error(input) if none helps: a row of zeros, or values that are not finite.
  virtual void factorise(const SquareRows& a) = 0;
  /// x = (the factors)⁻¹·x, `columns` right-hand sides, row-major, rows in the order of elimination. Before a row is looked
  /// at, fill(begin, end) has put its x; afterwards take(begin, end) may use it. Both get ranges of positions, and are
  /// called by several threads at once.
  using Rows = std::function<void(std::int64_t begin, std::int64_t end)>;
  virtual void solve(double* x, int columns, const Rows& fill, const Rows& take) const = 0;
  /// The values of the last factorise(), which may be freed by discard().
  virtual triangles::HostFactors arrays() const = 0;
  /// Frees the values: no solve() follows before the next factorise().
  virtual void discard() = 0;
  virtual std::int64_t bytes() const = 0;
  /// Blocks of L, D and U.
  std::int64_t blocks() const { return pattern_.blocks(); }
  double shift() const { return shift_; }
  const Order& order() const { return order_; }

 protected:
  Factors(Order order, Pattern pattern) : order_(std::move(order)), pattern_(std::move(pattern)) {}
  Order order_;
  Pattern pattern_;
  double shift_ = 0;
};

/// Without values. `size`: of the blocks, 1 to kMostUnknowns; `symmetric`: of a matrix that is so; `inner`: f64 or f32.
std::unique_ptr<Factors> make_factors(Order order, Pattern pattern, int size, bool symmetric, ValueType inner);

}  // namespace shardmat::incomplete
