// A level of a hierarchy on the device: its matrix, the smoother, and the ways to the next level.
//
// Threads: as Product. Everything is collective.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/krylov/multigrid_steps.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/loop/multigrid_options.h"
#include "runtime/solvers/multigrid/node_rows.h"
#include "runtime/solvers/multigrid/take_nodes.h"

namespace shardmat::multigrid {

/// A matrix and its product, in the type of the hierarchy.
struct Operator {
  std::unique_ptr<DistributedMatrix> matrix;
  std::unique_ptr<Product> product;

  Operator() = default;
  Operator(const NodeRows& rows, Context& context, MatrixOptions options);
};

class Level {
 public:
  /// `y_rows`: the map of the rows; null: they lie in the order of the nodes. `columns`: right-hand sides.
  /// `inverse`: inverse_diagonal(a).
  Level(const NodeRows& a, const HostVector<double>& inverse, Context& context, MatrixOptions options,
        std::shared_ptr<const RowMap> y_rows, int columns);

  const std::shared_ptr<const RowMap>& map() const { return a_.matrix->y_rows(); }
  /// 1.05 times the largest eigenvalue of D⁻¹·A by ten Lanczos steps, which estimate it from below.
  double find_radius(Stream& stream);
  /// Steps of the smoother on [lower, 1]·radius: before and after a correction alike.
  void set_smoother(double radius, int degree);
  /// The ways to the next level and back.
  void set_transfer(const NodeRows& p, const Level& coarse, Context& context, MatrixOptions options);
  /// The inverse of this level's matrix (dense_inverse()): it is the last one, and solved exactly.
  void set_inverse(const NodeRows& inverse, Context& context, MatrixOptions options);

  /// The first half of a V-cycle: x = smoother of r; r = what is left of it; the next level's r from that.
  void go_down(const Level& coarse, Stream& stream) const;
  /// The second half: x and r get the next level's x as a correction; then the smoother.
  void come_up(const Level& coarse, Stream& stream) const;
  /// On the last level: x = A⁻¹·r, or what the smoother makes of it.
  void solve(Stream& stream) const;
  Dense r() const { return a_.product->y_view(r_.data()); }
  Dense x() const { return a_.product->y_view(x_.data()); }
  std::int64_t device_bytes() const;
  /// That a cycle reads and writes at least on this level.
  std::int64_t cycle_bytes() const;

 private:
  class Scaling;
  struct Step {
    double a, b;
  };
  void smooth(krylov::Before before, Stream& stream) const;
  /// d = a·M·r + b·d and x = x + d for the d in the product's x().
  void step(const Dense& r, const Dense& d, const Dense& x, Step factors, krylov::Before before, Stream& stream) const;

  Context& context_;
  int size_;  ///< unknowns of a node
  std::int64_t nodes_;
  Operator a_, to_coarse_, from_coarse_, inverse_;
  Buffer diagonal_, places_, r_, x_;
  std::optional<krylov::Passes> passes_;
  std::vector<Step> steps_;
};

}  // namespace shardmat::multigrid
