// A level of a hierarchy on the device: its matrix, the smoother, and the ways to the next level.
//
// Threads: as Product. Everything is collective, unless it says so.
#pragma once

#include <memory>
#include <optional>

#include "runtime/context/context.h"
#include "runtime/maps/row_map.h"
#include "runtime/solvers/multigrid/device_coarsening.h"
#include "runtime/solvers/multigrid/node_rows.h"
#include "runtime/solvers/multigrid/operator.h"
#include "runtime/solvers/multigrid/restriction.h"
#include "runtime/solvers/multigrid/second_visit.h"
#include "runtime/solvers/multigrid/smoother.h"

namespace shardmat::multigrid {

/// Of the unknowns of the nodes, in their order. Collective.
std::shared_ptr<const RowMap> map_of(const Nodes& nodes, int size, Context& context);

class Level {
 public:
  /// Stores `a` in `type`, for `columns` right-hand sides.
  Level(const NodeRows& a, Context& context, ValueType type, int columns);

  /// The same with the rows on GPUs. In f16 the product with `modes` stays exact (blocks::BlockProduct).
  Level(const blocks::BlockRows& a, std::shared_ptr<const Nodes> nodes, Context& context, ValueType type, int columns,
        const Buffer* modes);

  /// 1.05 times the largest eigenvalue of D⁻¹·A by Lanczos steps, which estimate it from below. `inverse`:
  /// inverse_diagonal() of this level's matrix. REQUIRES: that is symmetric.
  double find_radius(const HostVector<double>& inverse, int steps, Stream& stream) const;
  double find_radius(const Buffer& inverse, int steps, Stream& stream) const;
  /// Before and after a correction alike, with `degree` steps; what Smoother::take() needs.
  void set_smoother(const SmootherEntry& entry, int degree, const NodeRows& a, const HostVector<double>& inverse,
                    double radius);
  /// With the inverses in f64 on the device. REQUIRES: entry.takes_blocks.
  void set_smoother(const SmootherEntry& entry, int degree, const Buffer& inverse, double radius);
  /// The ways to the next level and back; `columns`: by_column(p).
  void set_transfer(const NodeRows& p, const ByColumn& columns);
  void set_transfer(const DeviceCoarsening& way);
  /// The inverse of this level's matrix (dense_inverse()): it is the last one, and solved exactly.
  void set_inverse(const NodeRows& inverse);
  void set_inverse(const blocks::BlockRows& inverse, const Nodes& cols) {
    inverse_.emplace(inverse, cols, false, context_, type_, passes_->columns());
  }
  /// It is visited twice in a cycle.
  void set_second_visit(Combination combination);

  bool is_solved() const { return inverse_.has_value(); }

  /// New values on the same patterns. Those of NodeRows are collective for smoothers and transfers, others are not.
  void update(const NodeRows& a);
  void update(const blocks::BlockRows& a) { a_.update(a, context_.stream()); }
  void update_smoother(const NodeRows& a, const HostVector<double>& inverse, double radius);
  void update_smoother(const Buffer& inverse, double radius) { smoother_->take(inverse, radius, context_.stream()); }
  void update_transfer(const NodeRows& p, const ByColumn& columns);
  void update_transfer(const DeviceCoarsening& way);
  void update_inverse(const NodeRows& inverse);
  void update_inverse(const blocks::BlockRows& inverse) { inverse_->update(inverse, context_.stream()); }

  /// For the exchanges of A in stream order, as Exchange::wait().
  void wait(Stream& stream) const { a_.wait(stream); }
  /// r = −A·x.
  void begin_at_x(Stream& stream) const { a_.multiply(-1, x_.data(), 0, r_.data(), stream); }
  /// The first half of a V-cycle: x = smoother of r; r = what is left of it; the next level's r from that.
  void go_down(const Level& coarse, Stream& stream) const;
  /// The second half: x and r get the next level's x as a correction; then the smoother.
  void come_up(const Level& coarse, Stream& stream) const;
  /// On the last level: x = A⁻¹·r, or what the smoother makes of it.
  void solve(Stream& stream) const;
  /// What a second visit needs; null: there is none.
  const SecondVisit* second_visit() const { return second_visit_ ? &*second_visit_ : nullptr; }

  /// Row-major vectors of sum_type(type), nodes in the order of NodeRows.
  void* r() const { return r_.data(); }
  void* x() const { return x_.data(); }
  /// Visits can be recorded in a Graph.
  bool capturable() const;
  std::int64_t device_bytes() const;
  /// That a visit reads and writes at least on this level.
  std::int64_t visit_bytes() const;

 private:
  void make_vectors(int columns);
  SmootherInputs smoother_inputs(int degree) const;
  void take_smoother(const NodeRows& a, const HostVector<double>& inverse, double radius);
  /// By how much power steps of M·A make a vector longer in the end: about the largest magnitude of its eigenvalues.
  double find_growth(Stream& stream) const;

  Context& context_;
  ValueType type_;  ///< of the vectors
  int size_;        ///< unknowns of a node
  std::shared_ptr<const Nodes> nodes_;
  Operator a_;
  std::optional<Restriction> to_coarse_;
  std::optional<Operator> from_coarse_, inverse_;
  Buffer r_, x_;
  std::optional<krylov::Passes> passes_;
  bool damps_ = false;
  std::unique_ptr<Smoother> smoother_;
  std::optional<SecondVisit> second_visit_;
};

}  // namespace shardmat::multigrid
