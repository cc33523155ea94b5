#include "runtime/solvers/eigen/eigenpairs.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "comm/communicator.h"
#include "comm/same_on_all_ranks.h"
#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/context/context.h"
#include "runtime/context/context_scope.h"
#include "runtime/solvers/eigen/lobpcg.h"
#include "runtime/solvers/eigen/pencil.h"
#include "runtime/solvers/eigen/shift_invert.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMostPairs = 2000;

void require_options(const PairOptions& o, const modes::Pencil& pencil) {
  const auto refuse = [](const std::string& text, const char* setting) { throw Error(ErrorKind::usage, text, setting); };
  if (!(o.tolerance >= 0 && std::isfinite(o.tolerance))) refuse("the tolerance must be 0 or more, and finite", "tolerance");
  if (o.count < 1 || o.count > kMostPairs)
    refuse(fmt::format("the number of eigenvalues must be 1 … {}, not {}", kMostPairs, o.count), "count");
  if (o.count > pencil.free_rows())
    refuse(fmt::format("{} eigenvalues are wanted, and the matrix has {} rows{}", o.count, pencil.free_rows(),
                       pencil.held() == nullptr ? "" : " without those that state known values"),
           "count");
  if (o.guard < 0 || o.guard > kMostPairs) refuse(fmt::format("the guard vectors must be 0 … {}", kMostPairs), "guard");
  if (o.max_iterations < 1) refuse("the number of iterations must be 1 or more", "max_iterations");
  if (o.inner != "auto" && o.inner != "factors" && o.inner != "minres")
    refuse(fmt::format("inner solves are by factors, minres or auto, not {}", o.inner), "inner");
  if (!(o.inner_tolerance >= 0 && o.inner_tolerance < 1))
    refuse("the tolerance of inner solves must be 0 … 1", "inner_tolerance");
  if (o.shift && !std::isfinite(*o.shift)) refuse("the shift must be finite", "shift");
}

}  // namespace

PairVectors::PairVectors() = default;
PairVectors::PairVectors(PairVectors&&) noexcept = default;
PairVectors& PairVectors::operator=(PairVectors&&) noexcept = default;
PairVectors::~PairVectors() = default;

PairResult solve_pair(PairMethod method, DistributedMatrix& k, DistributedMatrix* m, const PairOptions& options,
                      PairVectors& vectors, const DistributedVector* x0, const EigenMonitor& monitor,
                      const std::function<bool()>& stop) {
  Context& context = k.context();
  const ContextScope scope(context);
  Communicator& ranks = context.communicator();
  require_same_on_all_ranks(ranks, {given_number("count", static_cast<double>(options.count)),
                                    given_number("tolerance", options.tolerance),
                                    given_number("max_iterations", static_cast<double>(options.max_iterations)),
                                    given_number("guard", static_cast<double>(options.guard)),
                                    given_number("seed", static_cast<double>(options.seed)),
                                    given_number("shift", options.shift.value_or(0)),
                                    {"inner", options.inner, {}},
                                    given_number("inner_tolerance", options.inner_tolerance),
                                    given_number("confirm", options.confirm),
                                    given_number("check_count", options.check_count)});
  const Timer set_up;
  std::unique_ptr<DistributedMatrix> moved;
  if (m != nullptr) moved = modes::on_maps_of(k, *m);
  if (moved) m = moved.get();
  modes::Pencil pencil(k, m, options.assume_symmetric);
  ranks.run_agreed([&] { require_options(options, pencil); });
  PairResult result;
  if (method == PairMethod::lobpcg) {
    ranks.run_agreed([&] {
      for (const double diagonal : pencil.k_diagonal())
        if (diagonal < 0)
          throw Error(
              ErrorKind::input,
              fmt::format("K is not positive semidefinite: its diagonal has {:.6g}; take the method shift_invert with "
                          "a shift, which needs no positive K",
                          diagonal),
              "method");
      if (pencil.massless() > 0)
        throw Error(ErrorKind::input,
                    fmt::format("M is not positive definite: {} of its rows have no mass; take the method shift_invert",
                                pencil.massless()),
                    "mass");
    });
    const auto make_inverse = [&](std::shared_ptr<const NearNullVectors> known, bool exact) {
      PreconditionerOptions of_k;
      of_k.columns = static_cast<int>(modes::kPanel), of_k.held = pencil.held(), of_k.multigrid = options.multigrid;
      if (exact) of_k.multigrid.inner = ValueType::f64;
      if (known != nullptr) of_k.multigrid.near_null_vectors = std::move(known), of_k.multigrid.near_null_space = "auto";
      return make_multigrid(k, of_k);
    };
    result.setup_seconds = set_up.seconds();
    modes::lobpcg(pencil, make_inverse, options, x0, monitor, stop, vectors, result);
  } else {
    modes::shift_invert(pencil, options, x0, monitor, stop, vectors, result);
  }
  result.seconds = ranks.all_reduce(set_up.seconds(), Reduction::max);
  for (const auto& [to, seconds] :
       {std::pair(&result.product_seconds, pencil.k_seconds), std::pair(&result.mass_seconds, pencil.m_seconds),
        std::pair(&result.inverse_seconds, result.inverse_seconds), std::pair(&result.setup_seconds, result.setup_seconds)})
    *to = ranks.all_reduce(seconds, Reduction::max);
  result.identity_rows = pencil.identity_rows(), result.penalty_rows = pencil.penalty_rows();
  result.penalty_ratio = pencil.penalty_ratio();
  return result;
}

void copy_vectors(const PairVectors& from, DistributedVector& to) {
  auto* const data = static_cast<double*>(to.view().data);
  for (std::int64_t i = 0; i < to.local_rows(); ++i)
    for (std::int64_t j = 0; j < from.count; ++j)
      data[i * from.count + j] = from.x->panel(j / modes::kPanel)[i * modes::kPanel + j % modes::kPanel];
}

}  // namespace shardmat
