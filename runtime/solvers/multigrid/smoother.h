// Smoothers: they reduce the errors that the next level cannot represent.
//
// To add one: a file with a class and a factory, a line in smoother_list.cpp and CMakeLists.txt.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/krylov/multigrid_steps.h"
#include "runtime/solvers/multigrid/node_rows.h"
#include "runtime/solvers/multigrid/operator.h"

namespace shardmat::multigrid {

/// The level that a smoother works on; it outlives the smoother.
struct SmootherInputs {
  const Operator& a;
  const krylov::Passes& passes;
  Device device;
  ValueType type;
  int size;  ///< unknowns of a node
  std::int64_t nodes;
  int degree;  ///< steps of smooth()
  void *r, *x;
};

/// Threads: as Product.
class Smoother {
 public:
  virtual ~Smoother() = default;
  /// Takes the values of the level's matrix, at first and after new values. `inverse`: inverse_diagonal(a). `radius`: of
  /// D⁻¹·A, if SmootherEntry::needs_radius. Not collective.
  virtual void take(const NodeRows& a, const HostVector<double>& inverse, double radius, Stream& stream) = 0;
  /// The same with the inverses in f64 on the device. REQUIRES: SmootherEntry::takes_blocks. Not collective.
  virtual void take(const Buffer& inverse, double radius, Stream& stream);
  /// Changes x; r: the residual of x. With Before::correction, a.x() is a correction that neither x nor r have yet. At the
  /// end a.x() is the last change of x, and r is the residual of the x before it. Collective.
  virtual void smooth(krylov::Before before, Stream& stream) const = 0;
  /// a.x() = M·r, without damping, in stream order. Only if SmootherEntry::needs_damping.
  virtual void precondition(Stream&) const {}
  /// Steps are so much shorter from now on.
  virtual void damp([[maybe_unused]] double factor) {}
  virtual std::int64_t device_bytes() const = 0;
  /// That smooth() reads and writes at least.
  virtual std::int64_t smooth_bytes() const = 0;
};

/// One line in the list of smoothers.
struct SmootherEntry {
  std::string_view name, help;
  bool needs_radius;           ///< an estimate of the largest eigenvalue of D⁻¹·A
  bool any_matrix;             ///< else: for symmetric matrices only
  bool takes_blocks = false;   ///< of the matrix it needs the inverses of the diagonal alone
  bool needs_damping = false;  ///< damp() after each take(): steps x += M·r could overshoot
  std::unique_ptr<Smoother> (*make)(const SmootherInputs& inputs) = nullptr;
};
std::span<const SmootherEntry> smoothers();

/// Throws Error(usage) with the nearest name if no smoother has this one.
const SmootherEntry& find_smoother(std::string_view name);

std::unique_ptr<Smoother> make_chebyshev_smoother(const SmootherInputs& inputs);
std::unique_ptr<Smoother> make_ic_smoother(const SmootherInputs& inputs);
std::unique_ptr<Smoother> make_ilu_smoother(const SmootherInputs& inputs);
std::unique_ptr<Smoother> make_l1_jacobi_smoother(const SmootherInputs& inputs);

}  // namespace shardmat::multigrid
