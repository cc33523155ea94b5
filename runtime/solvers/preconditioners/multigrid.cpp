// M = a cycle of smoothed aggregation (multigrid/hierarchy.h).
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/setting.h"
#include "runtime/solvers/multigrid/hierarchy.h"
#include "runtime/solvers/multigrid/known_nodes.h"
#include "runtime/solvers/multigrid/smoother.h"

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

/// Also those of field_split, which is multigrid of each field; incomplete factors take `inner`, too.
std::vector<SolverSetting> multigrid_settings() {
  using namespace settings;
  using O = SolverOptions;
  std::vector<std::string> smoothers{"auto"};
  for (const multigrid::SmootherEntry& entry : multigrid::smoothers()) smoothers.emplace_back(entry.name);
  std::vector<SolverSetting> all = of_preconditioners(
      {"multigrid", "field_split", "auto"},
      {word(
           "near_null_space",
           "vectors that A maps to almost 0: rigid (rigid-body modes, which need coordinates), constants (one for each "
           "unknown of a node), adaptive (the constants, and for symmetric matrices vectors that cycles from random ones "
           "find: no coordinates are needed, and the set-up takes longer), or auto: rigid where the coordinates are known "
           "and A maps the modes to almost 0, else constants",
           {"auto", "rigid", "constants", "adaptive"},
           [](const O& o) { return o.preconditioning.multigrid.near_null_space; },
           [](O& o, const std::string& text) { o.preconditioning.multigrid.near_null_space = text; }),
       number("strength", "couplings of X and more form aggregates", 0,
              [](O& o) -> double& { return o.preconditioning.multigrid.strength; }),
       word(
           "smoother",
           "what reduces errors on each level: chebyshev and ic (for symmetric matrices), l1_jacobi and ilu (for any), or "
           "auto: chebyshev if the matrix is symmetric, else l1_jacobi",
           smoothers, [](const O& o) { return o.preconditioning.multigrid.smoother; },
           [](O& o, const std::string& text) {
             if (text != "auto") multigrid::find_smoother(text);
             o.preconditioning.multigrid.smoother = text;
           }),
       word("cycle",
            "V: each level once; W: coarse levels twice; K: twice, with the best combination of both, for fgmres and cg; "
            "auto: V if the matrix is symmetric, else K with fgmres and W with other methods",
            {"auto", "V", "W", "K"}, [](O& o) -> std::string& { return o.preconditioning.multigrid.cycle; }),
       count("smoother_degree", "steps of the smoother before and after the coarse correction", 1, 10,
             [](O& o) -> int& { return o.preconditioning.multigrid.smoother_degree; }),
       count("coarse_size", "a level of at most N unknowns is solved exactly", 1, 10'000,
             [](O& o) -> std::int64_t& { return o.preconditioning.multigrid.coarse_size; }),
       count("rank_size",
             "coarse levels with fewer than N unknowns a rank, or than a quarter of the first level's, move to fewer ranks; "
             "0: none does",
             0, 1'000'000'000, [](O& o) -> std::int64_t& { return o.preconditioning.multigrid.rank_size; }),
       count("levels", "levels at most", 1, 100, [](O& o) -> int& { return o.preconditioning.multigrid.levels; }),
       word("refresh",
            "what new values of the matrix change: keep (the matrices of all levels), smooth (also the prolongations), or "
            "anew (the aggregates, too)",
            {"keep", "smooth", "anew"}, [](O& o) -> std::string& { return o.preconditioning.multigrid.refresh; })});
  const std::vector<SolverSetting> inner = of_preconditioners(
      {"multigrid", "field_split", "ilu", "ic", "auto"},
      {word(
          "inner",
          "type of the values inside: f32 is as good as f64 in most systems, and faster; f16: matrices of multigrid that "
          "is set up on a GPU, of 2, 3 or 6 unknowns a node, or of 1 and 100,000 rows or more, the rest in f32",
          {"f64", "f32", "f16"}, [](const O& o) { return std::string(name(o.preconditioning.multigrid.inner)); },
          [](O& o, const std::string& text) { o.preconditioning.multigrid.inner = parse_value_type(text); })});
  all.insert(all.end(), inner.begin(), inner.end());
  return all;
}

}  // namespace shardmat
