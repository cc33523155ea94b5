// Every method with every preconditioner on systems that are hard: what a solve tells must be true, on every rank. The lists
// are those of the library, so a new method or preconditioner is tested as soon as it is listed.
#include "tests/runtime/solvers/zoo.h"
#include "runtime/solvers/loop/preconditioner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "runtime/solvers/direct/factors.h"
#include "runtime/solvers/loop/attainable.h"
#include "runtime/solvers/method_choice.h"

namespace shardmat {
namespace {

using test::HardSystem;
using test::Own;
using test::RightHandSide;
using test::whole_matrix;

struct Pair {
  std::string method, preconditioner;
  std::string text() const { return method + " with " + preconditioner; }
  bool automatic() const { return method == kAutomaticMethod && preconditioner == kAutomaticPreconditioner; }
};

/// All methods and preconditioners, and the words that leave them to the library.
std::vector<Pair> pairs() {
  std::vector<std::string> names{std::string(kAutomaticPreconditioner)};
  for (const PreconditionerEntry& entry : preconditioners()) names.emplace_back(entry.name);
  std::vector<Pair> all;
  for (const std::string& name : names) all.push_back({std::string(kAutomaticMethod), name});
  for (const MethodEntry& method : methods())
    for (const std::string& name : names) all.push_back({std::string(method.name), name});
  return all;
}

bool takes_factors(const Pair& pair) { return pair.method == "direct" || pair.preconditioner == "direct"; }

bool takes_factors_only(const Pair& pair) {
  return pair.method == kAutomaticMethod || !find_method(pair.method).preconditioner.empty();
}

/// Where the nodes of this rank lie.
std::shared_ptr<const NodeCoordinates> coordinates_of(std::int64_t cube, const DistributedMatrix& matrix) {
  auto found = std::make_shared<NodeCoordinates>();
  for (const std::int64_t id : matrix.y_rows()->ids_by_place())
    if (id % 3 == 0)
      for (const std::int64_t divisor : {std::int64_t{1}, cube, cube * cube})
        found->of_own.push_back(static_cast<double>(id / 3 / divisor % cube));
  return found;
}

SolverOptions options_of(const Pair& pair, ValueType type, const HardSystem& system, const DistributedMatrix& matrix) {
  SolverOptions options;
  if (system.cube > 0) options.preconditioning.multigrid.coordinates = coordinates_of(system.cube, matrix);
  options.solver = pair.method, options.preconditioner = pair.preconditioner;
  if (pair.automatic()) {  // else times choose kernel and variant, and in f32 the bits choose what is tried next
    options.product.plan.emplace().measure = false;
    options.product.plan->reproducible = true;
  }
  options.rtol = type == ValueType::f64 ? 1e-8 : 1e-4;
  options.max_iterations = pair.automatic() ? 4000 : takes_factors(pair) ? 10 : 100;
  return options;
}

bool takes_any_matrix(const std::string& method) {
  return method == kAutomaticMethod || find_method(method).demands == Demands::nothing;
}

/// What ranks must have in common, as a number.
void expect_same_on_all_ranks(const std::string& text) {
  const auto mine = static_cast<std::int64_t>(std::hash<std::string>{}(text) >> 1);
  for (const std::int64_t other : world().all_gather(mine)) EXPECT_EQ(other, mine) << "here: " << text;
}

/// A system on the ranks, and sums over all its rows by plain loops.
class Checked {
 public:
  Checked(const HardSystem& system, ValueType type)
      : system_(system),
        type_(type),
        own_(system.matrix(), context_of(kHost64), 1, {type, system.first_is_empty, system.cube > 0 ? 3 : 1}) {
    for (double& value : own_.whole.values) value = rounded(type, value);
    b_ = whole(*own_.b);
    const auto n = static_cast<std::size_t>(own_.whole.rows);
    std::vector<long double> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = test::x_at(static_cast<std::int64_t>(i), 2) - 0.3;
    if (system.b == RightHandSide::consistent) {
      const std::vector<long double> ax = product(x).first;
      for (std::size_t i = 0; i < n; ++i) b_[i] = static_cast<double>(ax[i]);
    }
    if (system.b == RightHandSide::zero) std::fill(b_.begin(), b_.end(), 0.0);
    if (system.b == RightHandSide::nan) b_[n / 2] = std::numeric_limits<double>::quiet_NaN();
    for (double& value : b_) value = rounded(type, value);
    scatter(b_, *own_.b);
    find_null_space();
  }

  Own& own() { return own_; }
  void begin() {
    HostVector<double> x(b_.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = system_.b == RightHandSide::zero ? test::x_at(static_cast<std::int64_t>(i), 1) : 0;
    scatter(x, *own_.x);
  }

  struct Residual {
    double norm, norm_of_b, magnitudes;  ///< of b − A·x, of b, of |A|·|x| + |b|
    bool finite;
  };
  /// Of b without its parts along the first `removed` vectors that A maps to 0.
  Residual residual(int removed) {
    const HostVector<double> x = whole(*own_.x);
    std::vector<long double> xs(x.begin(), x.end()), b(b_.begin(), b_.end());
    const bool finite = std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(value); });
    project(b, static_cast<std::size_t>(removed));
    const auto [ax, magnitudes] = product(xs);
    long double squares = 0, of_b = 0, of_magnitudes = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
      const long double r = b[i] - ax[i], m = magnitudes[i] + std::abs(b[i]);
      squares += r * r, of_b += b[i] * b[i], of_magnitudes += m * m;
    }
    return {static_cast<double>(std::sqrt(squares)), static_cast<double>(std::sqrt(of_b)),
            static_cast<double>(std::sqrt(of_magnitudes)), finite};
  }

 private:
  HostVector<double> whole(const DistributedVector& vector) {
    HostVector<double> all = vector.gather(own_.context.stream());
    all.resize(static_cast<std::size_t>(own_.whole.rows));
    if (world().size() > 1) world().broadcast(std::span<double>(all), 0);
    return all;
  }
  void scatter(const HostVector<double>& all, DistributedVector& vector) {
    vector.scatter(world().rank() == 0 ? std::span<const double>(all) : std::span<const double>(), own_.context.stream());
  }
  /// A·x and |A|·|x|.
  std::pair<std::vector<long double>, std::vector<long double>> product(const std::vector<long double>& x) const {
    std::vector<long double> sums(x.size()), magnitudes(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      for (auto k = static_cast<std::size_t>(own_.whole.row_ptr[i]); k < static_cast<std::size_t>(own_.whole.row_ptr[i + 1]);
           ++k) {
        const long double term = own_.whole.values[k] * x[static_cast<std::size_t>(own_.whole.col_idx[k])];
        sums[i] += term, magnitudes[i] += std::abs(term);
      }
    return {sums, magnitudes};
  }
  /// Constants, or motions of the nodes of a cube of 4³: first those that need no coordinates, of
  /// them first the one that needs no nodes.
  void find_null_space() {
    const std::size_t n = b_.size();
    for (int v = 0; v < system_.singular; ++v) {
      std::vector<long double> mode(n);
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t node = i / 3, axis = i % 3;
        const long double at[3]{static_cast<long double>(node % 4), static_cast<long double>(node / 4 % 4),
                                static_cast<long double>(node / 16)};
        const auto of = static_cast<std::size_t>(v % 3), next = (of + 1) % 3;
        if (v == 0) mode[i] = 1;
        else if (v < 3) mode[i] = axis == of ? 1 : 0;
        else mode[i] = axis == of ? -at[next] : axis == next ? at[of] : 0;
      }
      project(mode, null_.size());
      long double squares = 0;
      for (const long double value : mode) squares += value * value;
      for (long double& value : mode) value /= std::sqrt(squares);
      const auto [image, magnitudes] = product(mode);
      for (std::size_t i = 0; i < n; ++i)
        ASSERT_LE(std::abs(image[i]), 10 * unit_roundoff(type_) * magnitudes[i] + 1e-12) << "the test is wrong";
      null_.push_back(std::move(mode));
    }
  }
  void project(std::vector<long double>& vector, std::size_t modes) const {
    for (std::size_t m = 0; m < 2 * modes; ++m) {  // twice
      const std::vector<long double>& mode = null_[m % modes];
      long double dot = 0;
      for (std::size_t i = 0; i < vector.size(); ++i) dot += mode[i] * vector[i];
      for (std::size_t i = 0; i < vector.size(); ++i) vector[i] -= dot * mode[i];
    }
  }

  const HardSystem& system_;
  ValueType type_;
  Own own_;
  HostVector<double> b_;
  std::vector<std::vector<long double>> null_;
};

/// The solver, or the refusal, which must say what it is about.
std::unique_ptr<Solver> make(Checked& checked, const SolverOptions& options, std::string& refusal) {
  try {
    return std::make_unique<Solver>(*checked.own().matrix, options);
  } catch (const Error& error) {
    refusal = error.what();
    EXPECT_TRUE(error.kind() == ErrorKind::usage || error.kind() == ErrorKind::input) << refusal;
    return nullptr;
  }
}

bool names(const std::string& text, std::string_view name) { return text.find(name) != std::string::npos; }

/// Reasons that a system with these properties cannot give.
void expect_possible(const HardSystem& system, const Pair& pair, const SolveResult& result, ValueType type) {
  const SolveReason reason = result.columns[0].reason;
  EXPECT_NE(reason, SolveReason::interrupted);
  if (system.singular == 0) {
    EXPECT_EQ(result.null_vectors, 0);
    if (type == ValueType::f64) {
      EXPECT_NE(reason, SolveReason::least_squares);
    }
  } else if (result.null_vectors != 0) {
    const bool cut = system.singular == 6 && world().size() == 3;  // a node has unknowns on two ranks
    EXPECT_EQ(result.null_vectors, system.singular == 6 && system.cube == 0 ? (cut ? 1 : 3) : system.singular);
  }
  EXPECT_EQ(result.penalty_rows, 0) << result.penalty_note;
  const bool solvable = result.null_vectors == system.singular || system.b == RightHandSide::consistent;
  const bool exact = takes_factors(pair) && type == ValueType::f64 && (system.definite || takes_any_matrix(pair.method));
  if (type == ValueType::f32 && reason == SolveReason::diverged_attainable_accuracy) return;
  if (solvable && (exact || pair.automatic())) {
    EXPECT_TRUE(converged(reason)) << name(reason) << " after " << result.iterations << ", residual "
                                   << result.columns[0].true_residual / result.columns[0].norm_of_b
                                   << (result.fall_backs.empty() ? "" : result.fall_backs.back());
  }
}

void expect_true(Checked& checked, const HardSystem& system, const SolverOptions& options, const SolveResult& result,
                 ValueType type) {
  const SolvedColumn& column = result.columns[0];
  expect_same_on_all_ranks(fmt::format("{} {} {} {} {}", name(column.reason), column.iterations, column.true_residual,
                                       column.floor, result.null_vectors));
  const Checked::Residual residual = checked.residual(result.null_vectors);
  if (!residual.finite) {
    EXPECT_FALSE(converged(column.reason)) << name(column.reason);
    return;
  }
  const double rounding = 64 * unit_roundoff(ValueType::f64) * residual.magnitudes;
  const double of_projection = result.null_vectors > 0 ? 4 * unit_roundoff(type) * residual.magnitudes : 0;
  EXPECT_NEAR(column.norm_of_b, residual.norm_of_b, 1e-6 * residual.norm_of_b + of_projection);
  const double slack = rounding + of_projection;
  EXPECT_NEAR(column.true_residual, residual.norm, 1e-6 * residual.norm + slack) << name(column.reason);
  if (column.reason == SolveReason::converged_rtol) {
    EXPECT_LE(residual.norm, *options.rtol * residual.norm_of_b * (1 + 1e-6) + slack);
  }
  if (column.reason == SolveReason::converged_atol) {
    EXPECT_LE(residual.norm, slack);
  }
  if (column.reason == SolveReason::converged_attainable) {
    EXPECT_LE(residual.norm, attainable_share(type) * residual.magnitudes + slack);
    EXPECT_LE(residual.norm, kAttainableMost * residual.norm_of_b);
  }
  if (!converged(column.reason)) {
    EXPECT_GT(residual.norm, *options.rtol * residual.norm_of_b * (1 - 1e-6) - slack);
  }
  EXPECT_EQ(std::ssize(column.history), column.iterations + 1);
  EXPECT_LE(column.iterations, options.max_iterations);
  if (system.b == RightHandSide::zero) {
    EXPECT_EQ(column.reason, SolveReason::converged_atol);
    EXPECT_EQ(residual.magnitudes, 0);  // x is 0
  }
}

void solve_one(Checked& checked, const HardSystem& system, const Pair& pair, ValueType type) {
  const SolverOptions options = options_of(pair, type, system, *checked.own().matrix);
  std::string refusal;
  const std::unique_ptr<Solver> solver = make(checked, options, refusal);
  expect_same_on_all_ranks(refusal);
  if (solver == nullptr) {
    EXPECT_TRUE(names(refusal, pair.method) || names(refusal, pair.preconditioner) ||
                (takes_factors(pair) && system.singular > 0))
        << refusal;
    EXPECT_FALSE(pair.automatic()) << refusal;
    return;
  }
  if (!takes_any_matrix(pair.method)) {
    EXPECT_TRUE(system.symmetric) << "not refused";
  }
  checked.begin();
  if (system.b == RightHandSide::nan) {
    const std::string error = error_of(ErrorKind::input, [&] { solver->solve(*checked.own().b, *checked.own().x); });
    EXPECT_TRUE(names(error, "b holds NaN")) << error;
    expect_same_on_all_ranks(error);
    return;
  }
  const SolveResult result = solver->solve(*checked.own().b, *checked.own().x);
  expect_possible(system, pair, result, type);
  expect_true(checked, system, options, result, type);
}

void each_system(ValueType type) {
  for (const HardSystem& system : test::hard_systems()) {
    Checked checked(system, type);
    for (const Pair& pair : pairs()) {
      // Libraries for factors wait for each other in threads that poll: some methods are enough.
      if (world().size() > 1 && pair.preconditioner == "direct" && !takes_factors_only(pair)) continue;
      SCOPED_TRACE(fmt::format("{} on {} in {}", pair.text(), system.name, name(type)));
      try {
        solve_one(checked, system, pair, type);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
}

TEST(SolverZoo, TellsTheTruthInF64) { each_system(ValueType::f64); }
TEST(SolverZoo, TellsTheTruthInF32) { each_system(ValueType::f32); }

/// Where hundreds of iterations would follow, the factors go on: from block Jacobi, and from multigrid.
TEST(SolverZoo, TakesFactorsWhereIterationsHaveNoEnd) {
  if (!direct::can_factorise(world())) GTEST_SKIP() << "no library for these ranks";
  const HardSystem plate{.name = "plate", .matrix = [] {
                           return whole_matrix("elasticity:nx=15,ny=15,nz=2,stretch=1x1x0.01,uniform,clamp=0.001");
                         }};
  const HardSystem shell{.name = "shell", .matrix = [] {
                           return whole_matrix("elasticity:nx=32,ny=32,nz=2,stretch=1x1x0.002,uniform,clamp=0.001");
                         }};
  for (const HardSystem* system : {&plate, &shell}) {
    SCOPED_TRACE(system->name);
    Checked checked(*system, ValueType::f64);
    for (const char* const method : {"auto", "cg"}) {
      SolverOptions options;
      options.solver = method, options.rtol = 1e-7, options.max_iterations = 600;
      Solver solver(*checked.own().matrix, options);
      checked.begin();
      const SolveResult result = solver.solve(*checked.own().b, *checked.own().x);
      const std::string falls = fmt::format("{}", fmt::join(result.fall_backs, "\n"));
      expect_same_on_all_ranks(fmt::format("{} {}", solver.options().solver, result.iterations));
      expect_true(checked, *system, solver.options(), result, ValueType::f64);
      EXPECT_EQ(solver.options().solver == "direct", options.solver == "auto") << falls;  // a method that was named stays
      if (options.solver != "auto") continue;
      EXPECT_TRUE(result.converged()) << falls;
      EXPECT_TRUE(names(falls, "the factors (direct) went on")) << falls;
      EXPECT_GE(result.iterations, 200);
      EXPECT_LE(result.iterations, 400);
      checked.begin();
      EXPECT_LE(solver.solve(*checked.own().b, *checked.own().x).iterations, 5);  // the factors stay
      // The most iterations are those of all attempts.
      std::vector<std::int64_t> told;
      SolveControl control;
      control.monitor = [&](std::int64_t iterations, const auto&, const auto&) { told.push_back(iterations); };
      options.max_iterations = result.iterations - 1;
      Solver limited(*checked.own().matrix, options);
      checked.begin();
      const SolveResult cut = limited.solve(*checked.own().b, *checked.own().x, control);
      EXPECT_EQ(cut.iterations, options.max_iterations);
      EXPECT_NE(cut.columns[0].reason, SolveReason::converged_rtol);  // though rounding may allow no more
      std::int64_t sum = 0;
      for (const SolveAttempt& attempt : cut.attempts) sum += attempt.iterations;
      EXPECT_EQ(sum, cut.iterations);
      EXPECT_EQ(cut.attempts.size(), cut.fall_backs.size() + 1);
      ASSERT_EQ(std::ssize(told), cut.iterations);
      for (std::size_t i = 0; i < told.size(); ++i) ASSERT_EQ(told[i], static_cast<std::int64_t>(i) + 1);
    }
  }
}

/// A method and a preconditioner that are both taken, but not together, are both named.
TEST(SolverZoo, RefusesPairsByName) {
  const HardSystem easy = test::hard_systems().front();
  Checked checked(easy, ValueType::f64);
  std::vector<Pair> refused;
  std::vector<std::string> texts, methods_taken, preconditioners_taken;
  for (const Pair& pair : pairs()) {
    std::string refusal;
    const SolverOptions options = options_of(pair, ValueType::f64, easy, *checked.own().matrix);
    if (make(checked, options, refusal) == nullptr) refused.push_back(pair), texts.push_back(refusal);
    else methods_taken.push_back(pair.method), preconditioners_taken.push_back(pair.preconditioner);
  }
  const auto in = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  EXPECT_FALSE(refused.empty());
  for (std::size_t i = 0; i < refused.size(); ++i) {
    if (!in(methods_taken, refused[i].method) || !in(preconditioners_taken, refused[i].preconditioner)) continue;
    EXPECT_TRUE(names(texts[i], refused[i].method) && names(texts[i], refused[i].preconditioner))
        << refused[i].text() << ": " << texts[i];
  }
}

}  // namespace
}  // namespace shardmat
