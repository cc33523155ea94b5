// M = a cycle of smoothed aggregation (multigrid/hierarchy.h).
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/hierarchy.h"
#include "runtime/solvers/multigrid/known_nodes.h"

namespace shardmat {
namespace {

class Multigrid final : public Preconditioner {
 public:
  Multigrid(DistributedMatrix& matrix, const PreconditionerOptions& options) : matrix_(matrix), options_(options) {
    take_known_nodes(matrix_, options_.multigrid);
    hierarchy_ = std::make_unique<multigrid::Hierarchy>(matrix_, options_.multigrid, options_.held, options_.columns);
  }

  void refresh(Stream&) override {
    matrix_.context().communicator().run_guarded([&] { hierarchy_->refresh(matrix_, options_.held); });
  }
  void expect(double norm) const override {
    scale_ = norm > 0 && std::isfinite(norm) ? std::exp2(std::round(std::log2(norm))) : 1;  // rounds nothing
  }
  void apply(const Dense& r, const Dense& z, Stream& stream) const override { hierarchy_->apply(r, z, scale_, stream); }
  bool varies() const override { return hierarchy_->varies(); }
  bool capturable() const override { return hierarchy_->capturable(); }
  std::int64_t usual_iterations() const override { return 16; }
  std::int64_t apply_bytes() const override { return hierarchy_->cycle_bytes(); }
  std::int64_t device_bytes() const override { return hierarchy_->device_bytes(); }
  const MultigridReport* multigrid() const override { return &hierarchy_->report(); }
  const multigrid::Hierarchy* hierarchy() const override { return hierarchy_.get(); }
  const NullVectors* null_vectors() const override { return &hierarchy_->null_vectors(); }
  std::string describe() const override {
    const MultigridReport& report = hierarchy_->report();
    std::string text =
        fmt::format("{}; cycle {}, {}; {} levels of", report.modes, report.cycle, report.smoother, report.levels.size());
    for (const LevelReport& level : report.levels) text += fmt::format(" {}", level.unknowns);
    return text +
           fmt::format(" unknowns, complexity {:.2f}; set up in {:.2f} s", report.operator_complexity, report.seconds);
  }

 private:
  DistributedMatrix& matrix_;
  PreconditionerOptions options_;
  std::unique_ptr<multigrid::Hierarchy> hierarchy_;
  mutable double scale_ = 1;
};

}  // namespace

std::unique_ptr<Preconditioner> make_multigrid(DistributedMatrix& matrix, const PreconditionerOptions& options) {
  std::unique_ptr<Preconditioner> made;
  matrix.context().communicator().run_guarded([&] { made = std::make_unique<Multigrid>(matrix, options); });
  return made;
}

}  // namespace shardmat
