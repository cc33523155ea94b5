// M = A⁻¹ by the factors of A (direct/factors.h), which lie in host memory: on a GPU, r and z are copied.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/direct/factors.h"
#include "runtime/solvers/loop/null_space.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/multigrid/asymmetry.h"
#include "runtime/solvers/multigrid/take_nodes.h"

namespace shardmat {
namespace {

constexpr double kRoundingAsymmetry = 1e-13;  ///< of ‖A − Aᵀ‖ / ‖A‖

class DirectFactors final : public Preconditioner {
 public:
  DirectFactors(DistributedMatrix& matrix, const PreconditionerOptions& options)
      : matrix_(matrix),
        held_(options.held),
        absolute_(options.absolute),
        projector_(options.projector),
        columns_(options.columns),
        places_(matrix.y_rows()->places_of_rows()),
        factors_(direct::choose_factors(matrix.context())) {
    refresh(matrix.context().stream());
  }

  void refresh(Stream& stream) override {
    multigrid::NodeRows rows;
    direct::Kind kind = direct::Kind::unsymmetric;
    ranks().run_guarded([&] {
      rows = multigrid::take_nodes(matrix_, 1, held_, stream);
      if (multigrid::asymmetry(rows) > kRoundingAsymmetry) return;
      bool positive = true;
      for (std::int64_t i = 0; i < rows.count(); ++i)
        positive = positive && rows.value[at(rows.find(i, static_cast<std::int32_t>(i)))] > 0;
      positive = ranks().all_reduce(positive ? 1 : 0, Reduction::min) == 1;
      kind = positive ? direct::Kind::definite : direct::Kind::symmetric;
    });
    factors_->factorise(rows, kind, matrix_.nodes_are_whole() ? matrix_.node_block_size() : 1);
    ranks().run_agreed([&] {
      if (absolute_ && matrix_.rows() > 0 && !factors_->report().definite)
        throw Error(ErrorKind::usage,
                    "this solver needs a preconditioner that is positive definite, and the matrix is not, nor are its "
                    "factors; take the solver direct or fgmres",
                    "preconditioner");
      b_.resize(static_cast<std::size_t>(matrix_.local_rows() * columns_));
    });
  }

  void take_projector(std::shared_ptr<const NullSpaceProjector> projector) override { projector_ = std::move(projector); }

  void apply(const Dense& r, const Dense& z, Stream& stream) const override {
    matrix_.context().wait(stream, "a vector for the factors");
    const auto rows = static_cast<std::size_t>(r.rows), columns = static_cast<std::size_t>(columns_);
    HostVector<double> mine;
    const auto each = [&](const auto& f) {
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
          f(mine[i * columns + j], b_[j * rows + static_cast<std::size_t>(places_[i])]);
    };
    ranks().run_agreed([&] {
      mine = to_host(r.data, r.rows * r.columns, r.type, stream);
      each([](double of_r, double& b) { b = of_r; });
    });
    // What rounding r to f32 left in the null space may become 1e16 times as large, and must go before z is rounded, too.
    const bool removes = projector_ != nullptr && projector_->type() == ValueType::f32;
    if (removes) projector_->remove(b_, columns_);
    factors_->solve(b_, columns_);
    if (removes) projector_->remove(b_, columns_);
    ranks().run_agreed([&] {
      each([](double& of_z, double x) { of_z = x; });
      to_device(z.data, mine, r.type, stream);
    });
    if (held_ != nullptr) held_->clear(z, stream);
  }

  bool capturable() const override { return false; }
  std::int64_t usual_iterations() const override { return 3; }
  std::int64_t device_bytes() const override {
    return matrix_.context().device().backend == Backend::host ? factors_->bytes() : 0;
  }
  const DirectReport* direct() const override { return &factors_->report(); }
  std::string describe() const override {
    const DirectReport& report = factors_->report();
    return fmt::format("{}: {}{}; ordering {}, {} nonzeros in {} of host memory; ordered in {}, factorised in {}{}",
                       report.library, report.kind, report.note.empty() ? "" : " (" + report.note + ")", report.ordering,
                       human_count(report.nonzeros), human_bytes(static_cast<double>(report.bytes)),
                       human_seconds(report.analysis_seconds), human_seconds(report.factorise_seconds),
                       ranks().size() == 1 ? "" : "; on several ranks the last bits of x vary from run to run");
  }

 private:
  Communicator& ranks() const { return matrix_.context().communicator(); }

  DistributedMatrix& matrix_;
  const HeldRows* held_;
  bool absolute_;
  std::shared_ptr<const NullSpaceProjector> projector_;
  int columns_;
  HostVector<std::int64_t> places_;
  std::unique_ptr<direct::Factors> factors_;
  mutable HostVector<double> b_;  ///< column by column, in the order of the source
};

}  // namespace

std::unique_ptr<Preconditioner> make_direct(DistributedMatrix& matrix, const PreconditionerOptions& options) {
  return std::make_unique<DirectFactors>(matrix, options);
}

}  // namespace shardmat
