// Options of solvers: defaults, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/matrix/vectors.h"
#include "runtime/solvers/solver.h"
#include "runtime/solvers/solver_settings.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

using test::TestMatrix;

TEST(Solver, TakesTheToleranceOfTheMatrixsType) {
  for (const auto& [c, expected] : {std::pair(kHost64, 1e-8), std::pair(kHost32, 1e-5)}) {
    TestMatrix at(c, "poisson27:n=8", LocalSort::none);
    EXPECT_EQ(Solver(at.matrix, {}).options().rtol, expected);
    SolverOptions none;
    none.rtol = 0;
    EXPECT_EQ(Solver(at.matrix, none).options().rtol, 0);
  }
}

/// What get() says of other options than the defaults, set() takes.
TEST(SolverSettings, ComeBackAsTheyWereGiven) {
  SolverOptions given;
  given.solver = "fgmres", given.preconditioner = "chebyshev", given.preconditioning.degree = 7;
  given.preconditioning.node_block_size = 3, given.rtol = 0.1, given.atol = 1e-300, given.restart = 17;
  given.divergence_tolerance = std::numeric_limits<double>::infinity(), given.max_iterations = std::int64_t{1} << 40;
  given.gram_schmidt = GramSchmidt::modified, given.variant = CgVariant::classic, given.assume_symmetric = true;
  given.residual_norm = ResidualNorm::natural, given.null_space = NullSpace::constant,
  given.penalty_rows = PenaltyRows::known;
  MultigridOptions& multigrid = given.preconditioning.multigrid;
  multigrid.near_null_space = "constants", multigrid.strength = 0.25, multigrid.smoother_degree = 3;
  multigrid.smoother = "l1_jacobi", multigrid.cycle = "W";
  multigrid.coarse_size = 77, multigrid.rank_size = 5, multigrid.levels = 4, multigrid.inner = ValueType::f64,
  multigrid.refresh = "smooth";
  given.preconditioning.factor = {2, 0.5, 7, "rcm", 1, 3};
  given.preconditioning.fields = "0001", given.preconditioning.schur = "multigrid";
  SolverOptions taken;
  for (const SolverSetting& setting : solver_settings()) {
    const std::string text = setting.get(given);
    EXPECT_NE(text, setting.get(taken)) << setting.name;
    setting.set(taken, text);
    EXPECT_EQ(setting.get(taken), text) << setting.name;
  }
  EXPECT_EQ(*taken.rtol, 0.1);
  EXPECT_EQ(taken.atol, 1e-300);
}

TEST(SolverSettings, RefuseWhatTheMethodDoesNotLookAt) {
  SolverOptions options;
  options.solver = "cg";
  const auto error_of_text = [&](const std::string& text) {
    return error_of(ErrorKind::usage, [&] { take_settings(text, options); });
  };
  EXPECT_NE(error_of_text("restart=7").find("restart is of no use with the solver cg"), std::string::npos);
  EXPECT_NE(error_of_text("degree=3 preconditioner=jacobi").find("degree is of no use with the preconditioner jacobi"),
            std::string::npos);
  take_settings("degree=3 restart=7 solver=gmres preconditioner=chebyshev", options);
  EXPECT_EQ(options.restart, 7);
  EXPECT_EQ(options.preconditioning.degree, 3);
}

TEST(Solver, RefusesOptionsThatDifferOverTheRanks) {
  TestMatrix at(kHost64, "poisson27:n=4", LocalSort::none);
  const Communicator& ranks = at.context.communicator();
  if (ranks.size() == 1) GTEST_SKIP() << "one rank";
  const bool last = ranks.rank() == ranks.size() - 1;
  const std::vector<std::pair<std::string, std::function<void(SolverOptions&)>>> changes{
      {"solver", [](SolverOptions& o) { o.solver = "minres"; }},
      {"preconditioner", [](SolverOptions& o) { o.preconditioner = "jacobi"; }},
      {"node_block_size", [](SolverOptions& o) { o.preconditioning.node_block_size = 2; }},
      {"degree", [](SolverOptions& o) { o.preconditioning.degree = 7; }},
      {"factor_levels", [](SolverOptions& o) { o.preconditioning.factor.levels = 1; }},
      {"drop_tolerance", [](SolverOptions& o) { o.preconditioning.factor.drop_tolerance = 1e-2; }},
      {"factor_fill", [](SolverOptions& o) { o.preconditioning.factor.fill = 5; }},
      {"factor_order", [](SolverOptions& o) { o.preconditioning.factor.order = "rcm"; }},
      {"factor_sweeps", [](SolverOptions& o) { o.preconditioning.factor.sweeps = 2; }},
      {"asm_overlap", [](SolverOptions& o) { o.preconditioning.factor.overlap = 1; }},
      {"near_null_space", [](SolverOptions& o) { o.preconditioning.multigrid.near_null_space = "constants"; }},
      {"strength", [](SolverOptions& o) { o.preconditioning.multigrid.strength = 0.25; }},
      {"smoother_degree", [](SolverOptions& o) { o.preconditioning.multigrid.smoother_degree = 3; }},
      {"smoother", [](SolverOptions& o) { o.preconditioning.multigrid.smoother = "l1_jacobi"; }},
      {"cycle", [](SolverOptions& o) { o.preconditioning.multigrid.cycle = "W"; }},
      {"coarse_size", [](SolverOptions& o) { o.preconditioning.multigrid.coarse_size = 77; }},
      {"rank_size", [](SolverOptions& o) { o.preconditioning.multigrid.rank_size = 5; }},
      {"levels", [](SolverOptions& o) { o.preconditioning.multigrid.levels = 4; }},
      {"inner", [](SolverOptions& o) { o.preconditioning.multigrid.inner = ValueType::f64; }},
      {"refresh", [](SolverOptions& o) { o.preconditioning.multigrid.refresh = "smooth"; }},
      {"fields", [](SolverOptions& o) { o.preconditioning.fields = "001"; }},
      {"schur", [](SolverOptions& o) { o.preconditioning.schur = "diagonal"; }},
      {"rtol", [](SolverOptions& o) { o.rtol = 1e-3; }},
      {"atol", [](SolverOptions& o) { o.atol = 1e-3; }},
      {"divergence_tolerance", [](SolverOptions& o) { o.divergence_tolerance = 1e9; }},
      {"max_iterations", [](SolverOptions& o) { o.max_iterations = 5; }},
      {"restart", [](SolverOptions& o) { o.restart = 5; }},
      {"gram_schmidt", [](SolverOptions& o) { o.gram_schmidt = GramSchmidt::modified; }},
      {"variant", [](SolverOptions& o) { o.variant = CgVariant::single_reduction; }},
      {"residual_norm", [](SolverOptions& o) { o.residual_norm = ResidualNorm::natural; }},
      {"null_space", [](SolverOptions& o) { o.null_space = NullSpace::constant; }},
      {"penalty_rows", [](SolverOptions& o) { o.penalty_rows = PenaltyRows::keep; }},
      {"assume_symmetric", [](SolverOptions& o) { o.assume_symmetric = true; }},
      {"columns", [](SolverOptions& o) { o.columns = 2; }},
      {"graph", [](SolverOptions& o) { o.graph = false; }}};
  for (const SolverSetting& setting : solver_settings())
    EXPECT_TRUE(std::any_of(changes.begin(), changes.end(), [&](const auto& c) { return c.first == setting.name; }))
        << setting.name;
  for (const auto& [name, change] : changes) {
    SolverOptions options;
    if (last) change(options);
    const std::string text = error_of(ErrorKind::usage, [&] { Solver(at.matrix, options); });
    EXPECT_NE(text.find("on this rank " + name + " is"), std::string::npos) << name << ": " << text;
  }
}

TEST(Solver, RefusesWhatItCannotTake) {
  TestMatrix square(kHost64, "poisson27:n=4", LocalSort::none);
  const auto refused = [&](const SolverOptions& options) {
    return error_of(ErrorKind::usage, [&] { Solver(square.matrix, options); });
  };
  SolverOptions options;
  options.solver = "gmress";
  EXPECT_NE(refused(options).find("did you mean gmres?"), std::string::npos) << refused(options);
  options = {};
  options.preconditioner = "jacoby";
  EXPECT_NE(refused(options).find("did you mean jacobi?"), std::string::npos) << refused(options);
  options = {};
  options.solver = "gmres", options.restart = 0;
  EXPECT_NE(refused(options).find("restart"), std::string::npos);
  options.restart = 30, options.residual_norm = ResidualNorm::natural;
  EXPECT_NE(refused(options).find("unpreconditioned"), std::string::npos);
  options = {};
  options.solver = "minres", options.variant = CgVariant::single_reduction;
  EXPECT_NE(refused(options).find("minres has no variants"), std::string::npos) << refused(options);
  options = {};
  options.rtol = std::nan("");
  EXPECT_NE(refused(options).find("rtol must be 0 or more"), std::string::npos);

  TestMatrix uneven(kHost64, "rmat:scale=6", LocalSort::none);
  options = {};
  options.solver = "cg";
  const std::string text = error_of(ErrorKind::usage, [&] { Solver(uneven.matrix, options); });
  EXPECT_NE(text.find("not: "), std::string::npos) << text;
  EXPECT_NE(text.find("gmres"), std::string::npos) << text;

  DistributedVector b(square.matrix, VectorLayout::rows, ValueType::f64),
      x(square.matrix, VectorLayout::rows, ValueType::f64);
  Solver solver(square.matrix, {});
  b.fill(std::nan(""), square.context.stream());
  EXPECT_NE(error_of(ErrorKind::input, [&] { solver.solve(b, x); }).find("NaN"), std::string::npos);
  b.fill(1, square.context.stream());
  EXPECT_TRUE(solver.solve(b, x).converged());  // stays usable
}

}  // namespace
}  // namespace shardmat
