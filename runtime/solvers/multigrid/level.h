// A level of a hierarchy on the device: its matrix, the smoother, and the ways to the next level.
//
// Threads: as Product. Everything is collective, unless it says so.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/krylov/multigrid_steps.h"
#include "runtime/context/context.h"
#include "runtime/solvers/multigrid/node_rows.h"
#include "runtime/solvers/multigrid/operator.h"

namespace shardmat::multigrid {

class Level {
 public:
  /// Stores `a` in `type`, for `columns` right-hand sides. `inverse`: inverse_diagonal(a).
  Level(const NodeRows& a, const HostVector<double>& inverse, Context& context, ValueType type, int columns);

  /// 1.05 times the largest eigenvalue of D⁻¹·A by ten Lanczos steps, which estimate it from below.
  double find_radius(Stream& stream) const;
  /// Steps of the smoother on [lower, 1]·radius: before and after a correction alike.
  void set_smoother(double radius, int degree);
  /// The ways to the next level and back; `columns`: by_column(p).
  void set_transfer(const NodeRows& p, const ByColumn& columns);
  /// The inverse of this level's matrix (dense_inverse()): it is the last one, and solved exactly.
  void set_inverse(const NodeRows& inverse);

  bool is_solved() const { return inverse_.has_value(); }

  /// New values on the same patterns. update_transfer() alone is collective.
  void update(const NodeRows& a, const HostVector<double>& inverse);
  void update_transfer(const NodeRows& p, const ByColumn& columns);
  void update_inverse(const NodeRows& inverse);

  /// The first half of a V-cycle: x = smoother of r; r = what is left of it; the next level's r from that.
  void go_down(const Level& coarse, Stream& stream) const;
  /// The second half: x and r get the next level's x as a correction; then the smoother.
  void come_up(const Level& coarse, Stream& stream) const;
  /// On the last level: x = A⁻¹·r, or what the smoother makes of it.
  void solve(Stream& stream) const;

  /// Row-major vectors of sum_type(type), nodes in the order of NodeRows.
  void* r() const { return r_.data(); }
  void* x() const { return x_.data(); }
  std::int64_t device_bytes() const;
  /// That a cycle reads and writes at least on this level.
  std::int64_t cycle_bytes() const;

 private:
  struct Step {
    double a, b;
  };
  void put_diagonal(const HostVector<double>& inverse);
  void smooth(krylov::Before before, Stream& stream) const;
  /// d = a·M·r + b·d and x = x + d.
  void step(const void* r, void* d, void* x, Step factors, krylov::Before before, Stream& stream) const;

  Context& context_;
  ValueType type_;
  int size_;  ///< unknowns of a node
  std::shared_ptr<const Nodes> nodes_;
  Operator a_;
  std::optional<Operator> to_coarse_, from_coarse_, inverse_;
  Buffer diagonal_, r_, x_;
  std::optional<krylov::Passes> passes_;
  std::vector<Step> steps_;
};

}  // namespace shardmat::multigrid
