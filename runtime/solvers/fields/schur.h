// About the inverse of the Schur complement S = C − D·F⁻¹·G of a saddle point [F G; D C].
//
// For Stokes, the mass matrix of the pressure over the viscosity is good for S (H. Elman, D. Silvester, A. Wathen, Finite
// elements and fast iterative solvers). The diagonal of P = C − D·diag(F)⁻¹·G grows with the elements as that matrix does.
// Where F is a mass matrix, as in Darcy's law, P is close to S itself, and a cycle of multigrid on it is taken. Where a
// strong wind rules F, as of Oseen, S⁻¹ is about −P⁻¹·D·W·F·W·G·P⁻¹ with W = diag(F)⁻¹: commutators in the sense of least
// squares (H. Elman, V. Howle, J. Shadid, R. Shuttleworth, R. Tuminaro, Block preconditioners based on approximate
// commutators, SIAM J. Sci. Comput. 27 (2006)), by two cycles on P. They know nothing of C, and must be asked for.
//
// Threads: one thread of each rank; collective, and the same error on all ranks.
#pragma once

#include <optional>
#include <string>

#include "runtime/context/context.h"
#include "runtime/solvers/loop/preconditioner_options.h"
#include "runtime/solvers/multigrid/hierarchy.h"
#include "runtime/solvers/multigrid/node_rows.h"
#include "runtime/solvers/multigrid/operator.h"

namespace shardmat::fields {

/// All of single entries.
struct SaddlePoint {
  multigrid::NodeRows f, g, d, c;
};

class SchurInverse {
 public:
  struct Options {
    std::string kind;       ///< PreconditionerOptions::schur
    bool absolute = false;  ///< |S|⁻¹ in place of S⁻¹
    int columns = 1;
    MultigridOptions multigrid;
  };
  /// `g`: of blocks.g in f64; outlives this object.
  SchurInverse(const SaddlePoint& blocks, const multigrid::Operator& g, Options options, Context& context);

  /// z = about S⁻¹·r for row-major vectors in host memory. r is changed. As Hierarchy::apply() for `scale`.
  void apply(HostVector<double>& r, HostVector<double>& z, double scale, Stream& stream) const;
  /// The constant of the second field is mapped to 0 by the whole matrix.
  bool is_singular() const { return singular_; }
  /// By G alone.
  bool keeps_constant_apart() const { return apart_; }
  bool varies() const { return cycle_ && cycle_->varies(); }
  std::int64_t device_bytes() const;
  std::string describe() const;

 private:
  enum class Kind { diagonal, multigrid, commutator };
  void take_diagonal(const multigrid::NodeRows& p);
  void take_constant(const SaddlePoint& blocks);
  Kind choose_kind(const multigrid::NodeRows& f) const;
  void commute(HostVector<double>& r, HostVector<double>& z, double scale, Stream& stream) const;
  void cycle(HostVector<double>& r, HostVector<double>& z, double scale, Stream& stream) const;
  template <class Value>
  HostVector<double> share_of_constant(const Value& value) const;
  Communicator& ranks() const { return context_.communicator(); }
  Dense view(HostVector<double>& v) const;

  Context& context_;
  Options options_;
  const multigrid::Operator& g_;
  Kind kind_ = Kind::diagonal;
  HostVector<double> inverse_;                 ///< of the diagonal of P
  std::optional<multigrid::Hierarchy> cycle_;  ///< of sign_·P
  std::optional<multigrid::Operator> f_, d_;   ///< of the commutator
  HostVector<double> weight_;                  ///< diag(F)⁻¹
  double sign_ = -1;                           ///< of S
  bool apart_ = false;                         ///< G maps the constant to 0, and C does not
  bool singular_ = false;                      ///< both do
  double constant_sum_ = 0;                    ///< 1ᵀ·C·1
  HostVector<double> c_of_constant_;
  mutable HostVector<double> first_, second_, pressure_;  ///< of the commutator
};

}  // namespace shardmat::fields
