// Options of solvers: defaults, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
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

/// A value of the setting other than its default.
std::string another_value(const SolverSetting& setting) {
  std::vector<std::string> tried = setting.choices;
  tried.insert(tried.end(), {"0", "1", "3", "0.25", "7.5", "001"});
  for (const std::string& text : tried) {
    SolverOptions options;
    try {
      setting.set(options, text);
    } catch (const Error&) {
      continue;
    }
    if (setting.get(options) != setting.get({})) return text;
  }
  ADD_FAILURE() << setting.name << " takes none of the values that were tried";
  return setting.get({});
}

/// What get() says of another value than the default, set() takes, and no other setting changes.
TEST(SolverSettings, ComeBackAsTheyWereGiven) {
  for (const SolverSetting& setting : solver_settings()) {
    SolverOptions given, taken;
    setting.set(given, another_value(setting));
    for (const SolverSetting& other : solver_settings())
      EXPECT_EQ(other.get(given) == other.get({}), other.name != setting.name) << setting.name << ", " << other.name;
    setting.set(taken, setting.get(given));
    EXPECT_EQ(setting.get(taken), setting.get(given)) << setting.name;
  }
  for (const auto& [name, text] : {std::pair{"atol", "1e-300"},
                                   {"rtol", "0.1"},
                                   {"rtol", "auto"},
                                   {"divergence_tolerance", "inf"},
                                   {"max_iterations", "1099511627776"},
                                   {"factor_order", "clusters:3"}}) {
    SolverOptions taken;
    find_solver_setting(name).set(taken, text);
    EXPECT_EQ(find_solver_setting(name).get(taken), text) << name;
  }
}

/// Each value that a setting does not take is refused in words that say what it takes.
TEST(SolverSettings, SayWhatTheyTake) {
  for (const auto& [name, text, words] :
       {std::tuple{"restart", "0", "restart must be a whole number from 1 to 100000, not \"0\""},
        {"restart", "3.5", "a whole number from 1 to 100000"},
        {"max_iterations", "-1", "a whole number of 0 or more"},
        {"atol", "inf", "atol must be 0 or more"},
        {"divergence_tolerance", "1", "divergence_tolerance must be above 1"},
        {"assume_symmetric", "yes", "assume_symmetric must be 0 or 1"},
        {"fields", "000", "digits 0 and 1"},
        {"cycle", "U", "cycle must be auto, V, W or K"},
        {"variant", "clasic", "did you mean classic?"},
        {"smoother", "jacobi", "l1_jacobi"}}) {
    const SolverSetting& setting = find_solver_setting(name);
    SolverOptions options;
    const std::string error = error_of(ErrorKind::usage, [&] { setting.set(options, text); });
    EXPECT_NE(error.find(words), std::string::npos) << name << ": " << error;
    const std::string all = describe_settings(), line = all.substr(all.find(std::string("\n") + name + ": ") + 1);
    EXPECT_NE(line.substr(0, line.find('\n')).find(setting.values + ". Default: " + setting.get({}) + "."),
              std::string::npos)
        << name;
  }
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
  std::vector<std::pair<std::string, std::function<void(SolverOptions&)>>> changes{
      {"columns", [](SolverOptions& o) { o.columns = 2; }}, {"graph", [](SolverOptions& o) { o.graph = false; }}};
  for (const SolverSetting& setting : solver_settings())
    changes.emplace_back(setting.name, [&](SolverOptions& o) { setting.set(o, another_value(setting)); });
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
