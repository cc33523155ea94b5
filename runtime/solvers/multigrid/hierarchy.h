// Smoothed aggregation by node blocks: the levels of a matrix, and a V-cycle over them.
//
// P. Vaněk, J. Mandel, M. Brezina, Algebraic multigrid by smoothed aggregation for second and fourth order elliptic
// problems, Computing 56 (1996). Set-up in host memory in f64; the cycle runs on the device, in the type of the options.
//
// Threads: as DistributedMatrix. Everything is collective.
#pragma once

#include <memory>
#include <vector>

#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/solvers/loop/multigrid_options.h"
#include "runtime/solvers/multigrid/level.h"
#include "runtime/solvers/multigrid/report.h"

namespace shardmat::multigrid {

class Hierarchy {
 public:
  /// `matrix`: square, with its rows in host memory. `plan`: for the products of all levels. The same error on all ranks.
  Hierarchy(DistributedMatrix& matrix, const MultigridOptions& options, const PlanRequest& plan, const HeldRows* held,
            int columns);

  /// z = about A⁻¹·r by one cycle, for row-major vectors of the matrix's sum_type(). In stream order. r is divided by
  /// `scale` meanwhile, so that the type of the hierarchy holds it.
  void apply(const Dense& r, const Dense& z, double scale, Stream& stream) const;
  const MultigridReport& report() const { return report_; }
  std::int64_t device_bytes() const;
  std::int64_t cycle_bytes() const;

 private:
  void build(DistributedMatrix& matrix, const PlanRequest& plan, const HeldRows* held);

  Context& context_;
  MultigridOptions options_;
  int columns_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::optional<krylov::Passes> passes_;
  MultigridReport report_;
};

}  // namespace shardmat::multigrid
