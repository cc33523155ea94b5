#include <fmt/format.h>

#include <optional>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "runtime/context/context.h"
#include "runtime/solvers/direct/factors.h"
#include "runtime/solvers/eigen/shifted.h"

namespace shardmat::modes {
namespace {

class ShiftedFactors final : public ShiftedInverse {
 public:
  ShiftedFactors(Pencil& pencil, std::optional<double> sigma)
      : p_(pencil),
        ranks_(pencil.k().context().communicator()),
        places_(pencil.k().y_rows()->places_of_rows()),
        factors_(direct::choose_factors(pencil.k().context())) {
    if (sigma) factorise(*sigma);
  }

  std::optional<std::int64_t> below() const override {
    const DirectReport& report = factors_->report();
    if (report.definite) return 0;
    if (report.library.starts_with("MUMPS")) return report.negative;
    return std::nullopt;
  }
  std::optional<std::int64_t> below(double sigma) override {
    factorise(sigma);
    return std::as_const(*this).below();
  }

  bool move(double sigma) override {
    factorise(sigma);
    return true;
  }

  void solve(double* panel) override {
    const std::int64_t rows = p_.local_rows();
    ranks_.run_agreed([&] { b_.resize(at(rows * kPanel)); });
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < kPanel; ++j) b_[at(j * rows + places_[at(i)])] = panel[i * kPanel + j];
    factors_->solve(b_, static_cast<int>(kPanel));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < kPanel; ++j) panel[i * kPanel + j] = b_[at(j * rows + places_[at(i)])];
    p_.clear_held(panel);
  }

  const char* name() const override { return "factors"; }
  std::string describe() const override {
    const DirectReport& report = factors_->report();
    return fmt::format("{}: {}; ordering {}, {} nonzeros in {}; ordered in {}, factorised in {}", report.library,
                       report.kind, report.ordering, human_count(report.nonzeros),
                       human_bytes(static_cast<double>(report.bytes)), human_seconds(report.analysis_seconds),
                       human_seconds(report.factorise_seconds));
  }
  std::string why_not_counted() const override { return factors_->report().library + " does not tell the signs of pivots"; }

 private:
  void factorise(double sigma) {
    const multigrid::NodeRows a = p_.shifted(sigma);
    bool positive = true;
    ranks_.run_agreed([&] {
      for (std::int64_t i = 0; i < a.count(); ++i) {
        const std::int64_t e = a.find(i, static_cast<std::int32_t>(i));
        positive = positive && e >= 0 && a.value[at(e)] > 0;
      }
    });
    positive = ranks_.all_reduce(positive ? 1 : 0, Reduction::min) == 1;
    const DistributedMatrix& k = p_.k();
    factors_->factorise(a, positive ? direct::Kind::definite : direct::Kind::symmetric,
                        k.nodes_are_whole() ? k.node_block_size() : 1);
  }

  Pencil& p_;
  Communicator& ranks_;
  HostVector<std::int64_t> places_;
  std::unique_ptr<direct::Factors> factors_;
  HostVector<double> b_;
};

}  // namespace

std::unique_ptr<ShiftedInverse> make_shifted_factors(Pencil& pencil, std::optional<double> sigma) {
  return std::make_unique<ShiftedFactors>(pencil, sigma);
}

std::unique_ptr<ShiftedInverse> make_shifted(Pencil& pencil, double sigma, const PairOptions& options, std::string& why) {
  Communicator& ranks = pencil.k().context().communicator();
  if (options.inner == "factors") return make_shifted_factors(pencil, sigma);
  if (options.inner == "auto") {
    if (direct::can_factorise(ranks)) {
      try {
        return make_shifted_factors(pencil, sigma);
      } catch (const AgreedError& error) {
        if (error.kind() != ErrorKind::resources) throw;
        why = error.what();
      }
    } else {
      why =
          ranks.size() > 1 ? "this build has no direct solver for several ranks (MUMPS)" : "this build has no direct solver";
    }
  }
  return make_shifted_minres(pencil, sigma, options);
}

}  // namespace shardmat::modes
