// A pair of symmetric matrices for K·x = λ·M·x, ready to multiply panels of eight vectors on the host.
//
// Rows that state known values are no part of the problem, and are held at 0: rows of K that are those of the identity (as
// solvers write supports) and penalty rows. Without an M, M = I, and identity rows are rows like others.
//
// Threads: as DistributedMatrix. Everything is collective unless it says otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/eigen/panels.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::modes {

/// M with its rows where K has them: a copy, or nothing if they lie so. Throws the same Error(usage) on all ranks for
/// matrices of different sizes.
std::unique_ptr<DistributedMatrix> on_maps_of(const DistributedMatrix& k, DistributedMatrix& m);

class Pencil {
 public:
  /// `m`: on the maps of `k`; null: the identity. Both outlive this object, and have their rows in host memory. Throws the
  /// same Error on all ranks: usage for other types than f64, GPUs, and matrices that are not square, not symmetric or of
  /// other sizes; input for an M with a diagonal below 0.
  Pencil(DistributedMatrix& k, DistributedMatrix* m, bool assume_symmetric);

  bool has_mass() const { return m_ != nullptr; }
  DistributedMatrix& k() const { return k_; }
  const Product& k_product() const { return *k_product_; }
  std::int64_t local_rows() const { return k_.local_rows(); }
  /// Of all ranks, without those that are held.
  std::int64_t free_rows() const { return k_.rows() - held_k_.count(); }
  std::int64_t identity_rows() const { return identity_rows_; }
  std::int64_t penalty_rows() const { return penalty_rows_; }
  double penalty_ratio() const { return penalty_ratio_; }
  const HeldRows* held() const { return held_k_.count() > 0 ? &held_k_ : nullptr; }
  /// Rows of M without mass that are not held.
  std::int64_t massless() const { return massless_; }
  /// Σ K_ii / Σ M_ii over the rows that are not held: a mean of all eigenvalues.
  double mean_value() const { return mean_value_; }
  const HostVector<double>& k_diagonal() const { return k_diagonal_; }

  /// y = K·x of one panel each; y = M·x.
  void multiply_k(const double* x, double* y);
  void multiply_m(const double* x, double* y);
  void multiply_k(const Panels& x, const Panels& y);
  void multiply_m(const Panels& x, const Panels& y);
  /// Zeros the held rows. Not collective.
  void clear_held(double* panel);
  Dense view(double* panel) const { return k_product_->y_view(panel); }
  /// Values that depend on the row of the source alone, ±[½, 1); not M-orthogonal to anything.
  void fill_random(const Panels& x, std::int64_t columns, std::uint64_t seed);

  /// K − σ·M by single unknowns, held rows as those of the identity.
  multigrid::NodeRows shifted(double sigma);
  /// The same on the maps of K.
  std::unique_ptr<DistributedMatrix> combined(double sigma);
  double k_seconds = 0, m_seconds = 0;  ///< of all products, on this rank

 private:
  void find_held_rows();
  void require_symmetric(const Product& product, const char* name) const;

  DistributedMatrix& k_;
  DistributedMatrix* m_;
  std::unique_ptr<Product> k_product_, m_product_;
  HeldRows held_k_{kPanel}, held_m_{kPanel};
  HostVector<double> k_diagonal_;
  std::int64_t identity_rows_ = 0, penalty_rows_ = 0, massless_ = 0;
  double penalty_ratio_ = 0, mean_value_ = 0;
};

}  // namespace shardmat::modes
