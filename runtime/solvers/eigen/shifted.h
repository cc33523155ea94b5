// (K − σ·M)⁻¹ times panels: by factors, or by MINRES with multigrid where factors are not to be had.
//
// Threads: as Pencil. Collective; the same error on all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/solvers/eigen/eigenpairs.h"
#include "runtime/solvers/eigen/pencil.h"

namespace shardmat::modes {

class ShiftedInverse {
 public:
  virtual ~ShiftedInverse() = default;
  /// A panel becomes (K − σ·M)⁻¹ times itself.
  virtual void solve(double* panel) = 0;
  /// Later calls of solve() leave residuals a hundred times smaller, as far as rounding errors allow; factors do that
  /// anyway.
  virtual void sharpen() {}
  /// Eigenvalues below the shift; nothing: nobody knows.
  virtual std::optional<std::int64_t> below() const { return std::nullopt; }
  /// The same of another shift. After that solve() is for the other one.
  virtual std::optional<std::int64_t> below(double) { return std::nullopt; }
  /// solve() is for another shift from now on; false: it stays as it was.
  virtual bool move(double) { return false; }
  virtual const char* name() const = 0;  ///< as of PairOptions::inner
  virtual std::string describe() const = 0;
  /// Why below() says nothing.
  virtual std::string why_not_counted() const = 0;
};

/// The signs of the pivots count eigenvalues (Sylvester's law of inertia). Throws Error(usage) where no factors are to be
/// had, and Error(resources) if they should not fit in memory. Without a shift it waits for below(…).
std::unique_ptr<ShiftedInverse> make_shifted_factors(Pencil& pencil, std::optional<double> sigma);

/// MINRES with multigrid of K + |σ|·M. solve() throws Error(usage) where it does not get there.
std::unique_ptr<ShiftedInverse> make_shifted_minres(Pencil& pencil, double sigma, const PairOptions& options);

/// What options.inner says. `why`: what made "auto" take MINRES, or empty.
std::unique_ptr<ShiftedInverse> make_shifted(Pencil& pencil, double sigma, const PairOptions& options, std::string& why);

/// Counts the eigenvalues around those of `result`, and says there whether some are missing. `both_sides`: of sigma, else
/// all are above it. `next`: an estimate of the next one; none: there is none.
void count_pairs(ShiftedInverse& inverse, double sigma, bool both_sides, std::optional<double> next, PairResult& result);

}  // namespace shardmat::modes
