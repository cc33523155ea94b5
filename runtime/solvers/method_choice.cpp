#include "runtime/solvers/method_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/communicator.h"
#include "comm/exchange/column_map.h"
#include "kernels/diagonal.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/kept_upload.h"
#include "kernels/matrix/csr.h"
#include "runtime/context/context.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/solvers/direct/factors.h"
#include "runtime/solvers/loop/symmetry.h"

namespace shardmat {

bool has_positive_diagonal(DistributedMatrix& matrix, Stream& stream) {
  if (matrix.context().communicator().size() == 1 && matrix.has_host_rows())
    if (const auto uploaded = KeptUpload::find_exact(matrix.host_pattern())) {
      const double lowest = diagonal_extremes(*uploaded, matrix.column_map().first_own(), stream).lowest;
      if (lowest != 0) return lowest > 0;
    }
  const HostVector<double> mine = matrix.diagonal(stream).own(stream);
  bool positive = std::all_of(mine.begin(), mine.end(), [](double entry) { return entry >= 0; });
  HostVector<std::int64_t> zeros;  // places
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (mine[i] == 0) zeros.push_back(static_cast<std::int64_t>(i));
  if (!zeros.empty() && !matrix.has_host_rows()) positive = false;  // rows of zeros cannot be told from others
  if (positive && !zeros.empty()) {
    const CsrView rows = matrix.host_rows(stream);
    const HostVector<std::int64_t> row_of = matrix.y_rows()->rows_by_place();
    rows.values.visit([&](const auto& values) {
      for (const std::int64_t place : zeros) {
        const std::int64_t* const start = &rows.row_ptr[static_cast<std::size_t>(row_of[static_cast<std::size_t>(place)])];
        const auto first = values.begin() + (start[0] - rows.row_ptr[0]);
        positive = positive && std::all_of(first, first + (start[1] - start[0]),
                                           [](auto value) { return static_cast<double>(value) == 0; });
      }
    });
  }
  return matrix.context().communicator().all_reduce(positive ? 1 : 0, Reduction::min) == 1;
}

bool is_known_symmetric(const Product& product, const SolverOptions& options) {
  const auto& plans = product.row_plans();
  return options.assume_symmetric || std::any_of(plans.begin(), plans.end(), [](const RowPlan& plan) {
           return plan.storage().format == "symmetric";  // only symmetric matrices are stored so
         });
}

bool asks_for_varying_cycle(const SolverOptions& options) {
  const bool may_use = options.preconditioner == "multigrid" || options.preconditioner == kAutomaticPreconditioner;
  return may_use && options.preconditioning.multigrid.cycle == "K";
}

MethodChoice choose_method(const Product& product, const SolverOptions& options, bool positive_diagonal,
                           const Preconditioner* made) {
  if (options.own_preconditioner) return {&find_method("fgmres"), "the program's preconditioner may change"};
  if (options.preconditioner == "ilu")
    return {&find_method("bicgstab"), "ilu is not symmetric; of a symmetric matrix ic is, and cg takes it"};
  if (options.preconditioner == "field_split") {
    const bool varies = made != nullptr ? made->varies() : options.preconditioning.multigrid.cycle == "K";
    return {&find_method(varies ? "fgmres" : "gmres"),
            "a triangle of the fields is not symmetric; minres takes their diagonal, in twice the iterations"};
  }
  std::string symmetric = "symmetric";
  if (!is_known_symmetric(product, options)) {
    const SymmetryProbe probe = probe_symmetry(product, product.matrix().context().stream());
    if (!probe.symmetric)
      return {&find_method(made != nullptr && made->varies() ? "fgmres" : "gmres"),
              "xᵀAy and yᵀAx of random vectors differ: the matrix is not symmetric"};
    symmetric = "symmetric within rounding";
  }
  if (made != nullptr ? made->varies() : asks_for_varying_cycle(options))
    return {&find_method("fgmres"), fmt::format("the matrix is {}, and the cycle K is no linear map", symmetric), true};
  if (positive_diagonal)
    return {&find_method("cg"), fmt::format("the matrix is {}, and its diagonal is positive", symmetric), true};
  return {
      &find_method("minres"),
      fmt::format("the matrix is {}, and its diagonal is not positive everywhere: it is not positive definite", symmetric),
      true};
}

namespace {

/// Iterations without headway that constants get where adaptive vectors may follow: about the price of these, whose set-up
/// takes as long as 70 to 230 iterations (measured on beams, plates and tetrahedra of CAD parts). Residuals of thin beams
/// and plates stay at first, for 100 to 180 iterations where constants are the faster way to the end, for 230 to 700 where
/// adaptive vectors are. Other preconditioners are slower by far.
constexpr std::int64_t kPatienceOfConstants = 150;

bool may_be_elasticity_without_coordinates(const DistributedMatrix& matrix, const MultigridOptions& options) {
  const std::int64_t size = matrix.node_block_size();
  return options.near_null_space == "auto" && !options.near_null_vectors && !options.coordinates &&
         (size == 2 || size == 3 || size == 6);
}

}  // namespace

std::vector<SolverChoice> choose_solvers(DistributedMatrix& matrix, const SolverOptions& options, const MethodEntry& method,
                                         bool symmetric_positive, bool positive_diagonal) {
  constexpr std::int64_t kPatience = 300, kPatienceOfMultigrid = 30, kPatienceOfFactors = 30, kPatienceOfFields = 60;
  const auto rows_here = [&](bool here) {
    return matrix.context().communicator().all_reduce(here ? 1 : 0, Reduction::min) == 1;
  };
  if (!rows_here(matrix.has_host_rows()))
    return {{&method, "jacobi", "the rows are no longer in host memory, where others are made from", kPatience}};
  const bool named = options.solver != kAutomaticMethod, any_matrix = method.demands == Demands::nothing;
  const std::string_view simple = any_matrix && !symmetric_positive ? "jacobi" : "block_jacobi";
  std::string why;
  if (!positive_diagonal || method.demands == Demands::symmetric) why = "multigrid needs a positive diagonal";
  else if (matrix.rows() < kFewRowsForMultigrid)
    why = fmt::format("the matrix has fewer than {} rows", kFewRowsForMultigrid);
  std::vector<SolverChoice> choices;
  // Measured on convection and diffusion of 10,000 to 160,000 unknowns: mostly 1.5 to 16 times faster than multigrid, but
  // bicgstab diverges on some, and where the wind turns in two dimensions, iterations grow fast with the mesh.
  const bool takes_factors =
      !symmetric_positive && positive_diagonal && any_matrix && matrix.context().device().backend == Backend::host;
  if (takes_factors && (!named || method.factors_first))
    choices.push_back({named ? &method : &find_method("bicgstab"), "ilu",
                       "the diagonal is positive and the matrix not symmetric: the fastest where it converges",
                       kPatienceOfFactors});
  if (why.empty()) {
    const MethodEntry& flexible = find_method("fgmres");
    if (symmetric_positive) {
      const bool may_adapt = may_be_elasticity_without_coordinates(matrix, options.preconditioning.multigrid);
      choices.push_back({&method, "multigrid", "the matrix is symmetric, and its diagonal is positive",
                         may_adapt ? kPatienceOfConstants : kPatienceOfMultigrid});
      if (may_adapt) choices.push_back({&method, "multigrid", "", kPatienceOfConstants, true});
      if (!named && !method.flexible) choices.push_back({&flexible, "multigrid", "", kPatienceOfMultigrid});
    } else {
      choices.push_back({named ? &method : &flexible, "multigrid",
                         "the diagonal is positive; of a matrix that is not symmetric it takes the cycle K",
                         kPatienceOfMultigrid});
      if (named && !method.flexible) choices.back().why = "the diagonal is positive";
    }
  }
  if (!positive_diagonal && method.demands != Demands::positive_definite &&
      matrix.context().device().backend == Backend::host) {
    const MethodEntry& taken = named ? method : find_method(method.demands == Demands::symmetric ? "gmres" : "fgmres");
    choices.push_back({&taken, "field_split",
                       "the diagonal is 0 or negative in some rows, as in saddle points: these are a second field",
                       kPatienceOfFields});
    // A triangle of the fields is not definite, and takes half the iterations.
    choices.back().absolute = taken.demands == Demands::symmetric;
  }
  if (takes_factors && (choices.empty() || choices.front().preconditioner != "ilu"))
    choices.push_back({&method, "ilu", why, kPatience});
  choices.push_back({&method, simple, why, kPatience});
  if (symmetric_positive && !named) choices.push_back({&find_method("minres"), "block_jacobi", "", kPatience});
  if (!named && matrix.rows() <= kMostRowsForFactors && direct::can_factorise(matrix.context().communicator()))
    choices.push_back({&find_method("direct"), "direct", "", kPatience, false, false});
  return choices;
}

}  // namespace shardmat
