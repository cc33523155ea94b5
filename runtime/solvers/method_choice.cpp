#include "runtime/solvers/method_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/communicator.h"
#include "runtime/context/context.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/solvers/loop/symmetry.h"

namespace shardmat {

bool has_positive_diagonal(DistributedMatrix& matrix, Stream& stream) {
  const HostVector<double> mine = matrix.diagonal(stream).own(stream);
  const bool positive = std::all_of(mine.begin(), mine.end(), [](double entry) { return entry > 0; });
  return matrix.context().communicator().all_reduce(positive ? 1 : 0, Reduction::min) == 1;
}

bool is_known_symmetric(const Product& product, const SolverOptions& options) {
  const auto& plans = product.row_plans();
  return options.assume_symmetric || std::any_of(plans.begin(), plans.end(), [](const RowPlan& plan) {
           return plan.storage().format == "symmetric";  // only symmetric matrices are stored so
         });
}

MethodChoice choose_method(const Product& product, const SolverOptions& options, bool positive_diagonal) {
  if (options.own_preconditioner) return {&find_method("fgmres"), "the program's preconditioner may change"};
  std::string symmetric = "symmetric";
  if (!is_known_symmetric(product, options)) {
    const SymmetryProbe probe = probe_symmetry(product, product.matrix().context().stream());
    if (!probe.symmetric)
      return {&find_method("gmres"), "xᵀAy and yᵀAx of random vectors differ: the matrix is not symmetric"};
    symmetric = "symmetric within rounding";
  }
  if (positive_diagonal)
    return {&find_method("cg"), fmt::format("the matrix is {}, and its diagonal is positive", symmetric)};
  return {
      &find_method("minres"),
      fmt::format("the matrix is {}, and its diagonal is not positive everywhere: it is not positive definite", symmetric)};
}

std::vector<SolverChoice> choose_solvers(DistributedMatrix& matrix, const SolverOptions& options, const MethodEntry& method,
                                         bool symmetric_positive) {
  constexpr std::int64_t kFewRows = 5000, kPatience = 300, kPatienceOfMultigrid = 30;
  const auto rows_here = [&](bool here) {
    return matrix.context().communicator().all_reduce(here ? 1 : 0, Reduction::min) == 1;
  };
  if (!rows_here(matrix.has_host_rows()))
    return {{&method, "jacobi", "the rows are no longer in host memory, where others are made from", kPatience}};
  const bool named = options.solver != kAutomaticMethod;
  std::vector<SolverChoice> choices;
  const bool for_symmetric = method.demands != Demands::nothing;
  if (symmetric_positive && method.demands != Demands::symmetric) {
    if (matrix.context().device().backend != Backend::host) {
      choices.push_back({&method, "block_jacobi", "multigrid runs on the host only", kPatience});
    } else if (matrix.rows() < kFewRows) {
      choices.push_back({&method, "block_jacobi", fmt::format("the matrix has fewer than {} rows", kFewRows), kPatience});
    } else {
      choices.push_back(
          {&method, "multigrid", "the matrix is symmetric, and its diagonal is positive", kPatienceOfMultigrid});
      if (!named) choices.push_back({&find_method("fgmres"), "multigrid", "", kPatienceOfMultigrid});
      choices.push_back({&method, "block_jacobi", "", kPatience});
    }
    if (!named) choices.push_back({&find_method("minres"), "block_jacobi", "", kPatience});
    return choices;
  }
  if (for_symmetric) return {{&method, "block_jacobi", "multigrid needs a positive diagonal", kPatience}};
  return {{&method, "jacobi", "multigrid needs a symmetric matrix with a positive diagonal", kPatience}};
}

}  // namespace shardmat
