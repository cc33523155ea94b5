// Every method with every preconditioner, against residuals by a plain loop on all rows.
#include "runtime/solvers/solver.h"
#include "runtime/solvers/loop/attainable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/matrix/dense_copy.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using test::Form;
using test::forms;
using test::options_of;
using test::System;
using test::whole_matrix;

void every_method_with_every_preconditioner(const Case& c) {
  const char *const elasticity = "elasticity:n=4,clamp=0.3", *const poisson = "poisson27:n=6";
  std::vector<std::pair<const char*, std::int64_t>> systems{{elasticity, 1}, {poisson, 3}};
  if (world().size() <= 2) systems.insert(systems.end(), {{elasticity, 3}, {poisson, 1}});  // sums over many ranks take long
  for (const auto& [specification, columns] : systems) {
    const HostCsr a = whole_matrix(specification);
    System system(c, specification, columns, columns == 3 ? LocalSort::by_length : LocalSort::none);
    for (const Form& form : forms())
      for (const PreconditionerEntry& preconditioner : preconditioners()) {
        if (!test::is_available(preconditioner.name) || !test::is_taken(preconditioner.name, form.method)) continue;
        SCOPED_TRACE(form.text() + " " + std::string(preconditioner.name) + " " + specification);
        SolverOptions options = options_of(form, preconditioner.name, c);
        options.columns = columns;
        if (preconditioner.name == "block_jacobi") options.preconditioning.node_block_size = 1;  // fits every part
        Solver solver(system.at.matrix, options);
        system.x.fill(0, system.stream());
        const SolveResult result = solver.solve(system.b, system.x);
        for (std::int64_t j = 0; j < columns; ++j) {
          const SolvedColumn& column = result.columns[static_cast<std::size_t>(j)];
          EXPECT_EQ(column.reason, SolveReason::converged_rtol) << name(column.reason);
          const double residual = system.residual(a, j), slack = c.type == ValueType::f64 ? 1.001 : 1.1;
          EXPECT_LE(residual, slack * *options.rtol * column.norm_of_b);
          EXPECT_NEAR(column.true_residual, residual, (slack - 1) * (residual + *options.rtol * column.norm_of_b));
          EXPECT_EQ(std::ssize(column.history), column.iterations + 1);
        }
      }
  }
}
SHARDMAT_MATRIX_TEST(Solver, EveryMethodWithEveryPreconditioner, every_method_with_every_preconditioner)

/// Blocks of one unknown are the diagonal, however the rows lie: unclamped rows are those of steel, clamped ones have a 1.
void blocks_of_one_are_the_diagonal(const Case& c) {
  for (const LocalSort sort : {LocalSort::none, LocalSort::by_length})
    for (const std::int64_t columns : {1, 3}) {
      System system(c, "elasticity:n=5,clamp=0.3", columns, sort);
      for (const Form& form : forms()) {
        SCOPED_TRACE(form.text());
        std::vector<std::vector<double>> histories;
        for (const char* preconditioner : {"jacobi", "block_jacobi"}) {
          SolverOptions options = options_of(form, preconditioner, c);
          options.columns = columns, options.max_iterations = 12;
          options.preconditioning.node_block_size = preconditioner[0] == 'b' ? 1 : 0;
          system.x.fill(0, system.stream());
          histories.push_back(Solver(system.at.matrix, options).solve(system.b, system.x).columns.back().history);
        }
        ASSERT_EQ(histories[0].size(), histories[1].size());
        for (std::size_t i = 0; i < histories[0].size(); ++i)
          EXPECT_NEAR(histories[0][i], histories[1][i], (c.type == ValueType::f64 ? 1e-6 : 2e-2) * histories[0][0]) << i;
      }
    }
}
SHARDMAT_MATRIX_TEST(Solver, BlocksOfOneAreTheDiagonal, blocks_of_one_are_the_diagonal)

void repeats_bit_by_bit(const Case& c) {
  System system(c, "elasticity:n=5,clamp=0.3", 1);
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.text());
    SolverOptions options = options_of(form, "jacobi", c);
    options.product.plan.emplace().reproducible = true;  // else cuSPARSE's kernel, whose bits vary, may be the fastest
    Solver solver(system.at.matrix, options);
    std::vector<std::vector<double>> histories;
    std::vector<HostVector<double>> xs;
    for (int run = 0; run < 2; ++run) {
      system.x.fill(0, system.stream());
      histories.push_back(solver.solve(system.b, system.x).columns[0].history);
      xs.push_back(system.x.own(system.stream()));
    }
    const auto [here, there] =
        std::mismatch(histories[0].begin(), histories[0].end(), histories[1].begin(), histories[1].end());
    EXPECT_EQ(histories[0], histories[1]) << "from iteration " << here - histories[0].begin() << " on: " << std::hexfloat
                                          << (here == histories[0].end() ? 0 : *here) << " and "
                                          << (there == histories[1].end() ? 0 : *there);
    EXPECT_EQ(xs[0], xs[1]);
    for (const double last : world().all_gather(histories[0].back())) EXPECT_EQ(last, histories[0].back());
  }
}
SHARDMAT_VECTOR_TEST(Solver, RepeatsBitByBit, repeats_bit_by_bit)

void ends_for_the_right_reason(const Case& c, CgVariant variant) {
  SCOPED_TRACE(name(variant));
  const Form cg{"cg", variant};
  System system(c, "elasticity:n=4,clamp=0.3", 1);
  const auto solve = [&](const SolverOptions& options, const SolveControl& control = {}) {
    return Solver(system.at.matrix, options).solve(system.b, system.x, control).columns[0];
  };
  SolverOptions options = options_of(cg, "none", c);
  options.max_iterations = 3;
  const SolvedColumn few = solve(options);
  EXPECT_EQ(few.reason, SolveReason::diverged_iterations);
  EXPECT_EQ(few.iterations, 3);

  options = options_of(cg, "none", c);
  EXPECT_EQ(solve(options).reason, SolveReason::converged_rtol);
  const SolvedColumn again = solve(options);  // begins from the answer
  EXPECT_EQ(again.iterations, 0);
  EXPECT_EQ(again.reason, SolveReason::converged_rtol);

  system.x.fill(0, system.stream());
  options.rtol = 1e-30;
  const SolvedColumn best = solve(options);
  EXPECT_EQ(best.reason, SolveReason::converged_attainable) << name(best.reason);
  EXPECT_GT(best.floor, 0);
  EXPECT_LE(best.true_residual, best.floor);
  EXPECT_GT(best.backward_error, 0);
  EXPECT_LE(best.backward_error, 2 * attainable_share(c.type));
  EXPECT_EQ(again.floor, 0);  // a product with |A| only where the tolerance was not met
  EXPECT_GE(best.replacements, 2);
  EXPECT_LT(best.true_residual, (c.type == ValueType::f64 ? 1e-10 : 1e-3) * best.norm_of_b);

  system.x.fill(0, system.stream());
  options.rtol = 0, options.atol = 0.5 * few.norm_of_b;
  EXPECT_EQ(solve(options).reason, SolveReason::converged_atol);

  system.x.fill(0, system.stream());
  options = options_of(cg, "none", c);
  options.rtol = c.type == ValueType::f64 ? 1e-14 : 1e-6;
  SolveControl control;
  std::int64_t seen = 0;
  control.monitor = [&](std::int64_t iteration, const std::vector<double>& norms, const std::vector<double>& true_norms) {
    EXPECT_EQ(iteration, ++seen);
    EXPECT_EQ(norms.size(), 1U);
    EXPECT_TRUE(true_norms.empty());
  };
  control.stop = [] { return world().rank() == world().size() - 1; };  // one rank ends all
  const SolvedColumn stopped = solve(options, control);
  EXPECT_EQ(stopped.reason, SolveReason::interrupted);
  EXPECT_EQ(stopped.iterations, seen);

  system.b.fill(0, system.stream());
  system.x.fill(3, system.stream());
  const SolvedColumn zero = solve(options_of("gmres", "jacobi", c));
  EXPECT_EQ(zero.reason, SolveReason::converged_atol);
  for (const double value : system.x.own(system.stream())) EXPECT_EQ(value, 0);
}
void ends_for_the_right_reason(const Case& c) {
  ends_for_the_right_reason(c, CgVariant::classic);
  ends_for_the_right_reason(c, CgVariant::single_reduction);
}
SHARDMAT_VECTOR_TEST(Solver, EndsForTheRightReason, ends_for_the_right_reason)

/// On GPUs one column has a launch of its own behind the product, which sums over all thread blocks; several columns have
/// passes. The GPU's matrix is so large that a thread has entries more than once.
void one_column_goes_as_several_do(const Case& c) {
  const bool on_gpu = c.backend == BackendChoice::cuda;
  const std::string specification = on_gpu ? "poisson7:n=112" : "poisson7:n=8";
  System one(c, specification, 1), two(c, specification, 2);
  const std::vector<std::string> on_gpus{"csr_balanced", "csr_vector"};  // p·q from the product, and from the vectors
  for (const char* preconditioner : {"none", "jacobi"})
    for (const std::string& kernel : on_gpu ? on_gpus : std::vector<std::string>{"csr_host"}) {
      SCOPED_TRACE(std::string(preconditioner) + " " + kernel);
      SolverOptions options = options_of(Form{"cg", CgVariant::classic}, preconditioner, c);
      options.rtol = 0, options.max_iterations = 20;
      std::vector<SolveResult> results;
      for (System* system : {&one, &two}) {
        options.columns = system->x.columns();
        options.product.plan.emplace().kernel = on_gpu && options.columns > 1 ? "csr_balanced" : kernel;
        Solver solver(system->at.matrix, options);
        system->x.fill(0, system->stream());
        results.push_back(solver.solve(system->b, system->x));
        EXPECT_EQ(results.back().columns[0].reason, SolveReason::diverged_iterations);
      }
      const std::vector<double>&of_one = results[0].columns[0].history, &of_two = results[1].columns[0].history;
      ASSERT_EQ(of_one.size(), 21U);
      ASSERT_EQ(of_two.size(), 21U);
      for (std::size_t i = 0; i < of_one.size(); ++i)
        EXPECT_NEAR(of_one[i], of_two[i], (c.type == ValueType::f64 ? 1e-9 : 1e-2) * of_two[i]) << i;
      EXPECT_NEAR(results[0].columns[0].true_residual, of_one.back(),
                  (c.type == ValueType::f64 ? 1e-6 : 1e-2) * results[0].columns[0].norm_of_b);
    }
}
SHARDMAT_VECTOR_TEST(Solver, OneColumnGoesAsSeveralDo, one_column_goes_as_several_do)

/// Both variants find the same numbers but for rounding; auto takes one of them and says why.
void takes_the_variant_that_is_asked_for(const Case& c) {
  System system(c, "elasticity:n=5,clamp=0.3", 2);
  const auto solve = [&](const SolverOptions& options) {
    Solver solver(system.at.matrix, options);
    system.x.fill(0, system.stream());
    const SolveResult result = solver.solve(system.b, system.x);
    EXPECT_TRUE(result.converged());
    return std::pair(result.columns[1].history, solver.variant());
  };
  for (const char* preconditioner : {"none", "jacobi", "chebyshev"}) {
    SCOPED_TRACE(preconditioner);
    SolverOptions options = options_of("cg", preconditioner, c);
    options.columns = 2;
    options.product.plan.emplace().kernel = c.backend == BackendChoice::host ? "csr_host" : "csr_balanced";
    options.product.plan->same_bits = true;  // so that histories can be compared
    const auto [chosen_history, chosen] = solve(options);
    ASSERT_TRUE(chosen);
    EXPECT_NE(chosen->variant, CgVariant::automatic);
    EXPECT_NE(chosen->why.find(world().size() == 1 ? "one rank" : "measured"), std::string::npos) << chosen->why;
    options.product.plan->reproducible = true;
    const auto [ruled_history, ruled] = solve(options);
    EXPECT_EQ(ruled->variant, world().size() == 1 ? CgVariant::classic : CgVariant::single_reduction);  // short vectors
    options.variant = CgVariant::classic;
    const auto [classic, of_classic] = solve(options);
    options.variant = CgVariant::single_reduction;
    const auto [single, of_single] = solve(options);
    EXPECT_EQ(of_single->variant, CgVariant::single_reduction);
    EXPECT_EQ(ruled_history, world().size() == 1 ? classic : single);
    EXPECT_NE(classic, single);
    for (const std::size_t i : {1, 4})
      EXPECT_NEAR(classic[i], single[i], (c.type == ValueType::f64 ? 1e-10 : 1e-3) * classic[0]);
  }
  SolverOptions options = options_of("gmres", "none", c);
  EXPECT_FALSE(Solver(system.at.matrix, options).variant());
}
SHARDMAT_VECTOR_TEST(Solver, TakesTheVariantThatIsAskedFor, takes_the_variant_that_is_asked_for)

void takes_the_gram_schmidt_that_is_asked_for(const Case& c) {
  System system(c, "elasticity:n=5,clamp=0.3", 1);
  std::vector<std::vector<double>> histories;
  for (const GramSchmidt way : {GramSchmidt::classical, GramSchmidt::modified}) {
    SolverOptions options = options_of("gmres", "jacobi", c);
    options.gram_schmidt = way;
    system.x.fill(0, system.stream());
    const SolvedColumn column = Solver(system.at.matrix, options).solve(system.b, system.x).columns[0];
    EXPECT_EQ(column.reason, SolveReason::converged_rtol);
    histories.push_back(column.history);
  }
  EXPECT_NE(histories[0], histories[1]);  // the same numbers but for rounding
  EXPECT_NEAR(histories[0][5], histories[1][5], (c.type == ValueType::f64 ? 1e-10 : 1e-3) * histories[0][0]);
}
SHARDMAT_VECTOR_TEST(Solver, TakesTheGramSchmidtThatIsAskedFor, takes_the_gram_schmidt_that_is_asked_for)

/// The residual falls by ten digits in one cycle after a long plateau, so that the basis is almost dependent before it is
/// made orthogonal. Made so once in all steps, it takes a third more iterations, and claims a residual that is not true.
void makes_a_dependent_basis_orthogonal(const Case& c) {
  for (const auto& [method, columns] : {std::pair{"gmres", 1}, {"gmres", 2}, {"fgmres", 1}}) {
    SCOPED_TRACE(method);
    System system(c, "convection_diffusion:nx=60,ny=60,nz=1,peclet=10", columns);
    if (columns == 2) {  // the other column wants a second time in other steps
      HostVector<double> values = system.b.own(system.stream());
      const HostVector<std::int64_t> ids = system.at.matrix.y_rows()->ids_by_place();
      for (std::size_t i = 0; i < ids.size(); ++i) values[2 * i + 1] = ids[i] == 1830 ? 1 : 0;
      system.b.set_own(values, system.stream());
    }
    std::vector<std::int64_t> iterations;
    for (const GramSchmidt way : {GramSchmidt::modified, GramSchmidt::classical}) {
      SolverOptions options = options_of(method, "ilu", c);
      // Another order has another plateau, and in f32 on a GPU M is linear to seven digits.
      options.preconditioning.factor.order = "natural", options.preconditioning.multigrid.inner = c.type;
      options.gram_schmidt = way, options.restart = 60, options.columns = columns;
      options.rtol = c.type == ValueType::f64 ? 1e-10 : 1e-4;
      system.x.fill(0, system.stream());
      const SolveResult result = Solver(system.at.matrix, options).solve(system.b, system.x);
      for (const SolvedColumn& column : result.columns) {
        EXPECT_EQ(column.reason, SolveReason::converged_rtol);
        EXPECT_EQ(column.replacements, 0);
        EXPECT_NEAR(column.history.back(), column.true_residual, 0.02 * column.true_residual);
      }
      iterations.push_back(result.columns[0].iterations);
    }
    EXPECT_NEAR(static_cast<double>(iterations[0]), static_cast<double>(iterations[1]), 1);
  }
}
SHARDMAT_VECTOR_TEST(Solver, MakesADependentBasisOrthogonal, makes_a_dependent_basis_orthogonal)

void takes_new_values(const Case& c) {
  LoadOptions load = test::options_for(c, LocalSort::none);
  load.values = Values::updatable;
  Context& context = context_of(c);
  Stream& stream = context.stream();
  DistributedMatrix a(open_matrix("elasticity:n=4,clamp=0.3", world()), context, load);
  for (const char* preconditioner : {"jacobi", "block_jacobi", "chebyshev"}) {
    SCOPED_TRACE(preconditioner);
    SolverOptions options = options_of("cg", preconditioner, c);
    options.preconditioning.node_block_size = 1;
    Solver solver(a, options);
    DistributedVector b(a, VectorLayout::rows, c.type), x(a, VectorLayout::rows, c.type);
    b.fill(1, stream);
    const auto values_times = [&](double factor) {
      const HostCsr whole = whole_matrix("elasticity:n=4,clamp=0.3");
      const auto& starts = a.y_rows()->starts();
      const auto rank = static_cast<std::size_t>(world().rank());
      const auto from = whole.row_ptr[static_cast<std::size_t>(starts[rank])],
                 to = whole.row_ptr[static_cast<std::size_t>(starts[rank + 1])];
      HostVector<double> values;
      for (auto k = from; k < to; ++k) values.push_back(factor * whole.values[static_cast<std::size_t>(k)]);
      ConstDense view;
      view.data = values.data(), view.rows = std::ssize(values), view.type = ValueType::f64;
      a.update_values(view, stream);
      solver.refresh();
    };
    values_times(1);
    const SolveResult one = solver.solve(b, x);
    const HostVector<double> before = x.own(stream);
    values_times(4);
    x.fill(0, stream);
    const SolveResult four = solver.solve(b, x);
    EXPECT_TRUE(one.converged() && four.converged());
    EXPECT_EQ(one.iterations, four.iterations);  // powers of two change no rounding
    const HostVector<double> after = x.own(stream);
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(4 * after[i], before[i]);
  }
}
SHARDMAT_VECTOR_TEST(Solver, TakesNewValues, takes_new_values)

/// A few steps of Jacobi with a product of its own, another number each time.
class OwnJacobi {
 public:
  OwnPreconditioner functions() {
    OwnPreconditioner own;
    own.set_up = [this](DistributedMatrix& matrix, std::int64_t columns, Stream& stream) {
      ++set_ups;
      matrix_ = &matrix;
      product_ = matrix.product(columns);
      take_diagonal(stream);
    };
    own.refresh = [this](Stream& stream) { ++refreshes, take_diagonal(stream); };
    own.apply = [this](const ConstDense& r, const Dense& z, Stream& stream) { apply(r, z, stream); };
    return own;
  }
  int set_ups = 0, refreshes = 0, calls = 0;
  bool fails = false;  ///< on the last rank

 private:
  void take_diagonal(Stream& stream) {
    diagonal_ = matrix_->diagonal(stream).own(stream);
    for (double& entry : diagonal_) entry = 0.8 / entry;
  }
  void apply(const ConstDense& r, const Dense& z, Stream& stream) {
    EXPECT_EQ(r.rows, matrix_->local_rows());
    EXPECT_EQ(z.columns, product_->columns());
    const auto count = static_cast<std::int64_t>(r.rows * r.columns);
    HostVector<double> rs = to_host(r.data, count, r.type, stream), zs(rs.size(), 0.0);
    for (int step = 0; step <= calls % 2; ++step) {
      to_device(z.data, zs, z.type, stream);
      DistributedVector az(*matrix_, VectorLayout::rows, z.type, z.columns);
      product_->multiply(1, z, 0, az.view(), stream);
      product_->wait(stream);
      const HostVector<double> azs = to_host(az.view().data, count, z.type, stream);
      for (std::size_t i = 0; i < zs.size(); ++i)
        zs[i] += diagonal_[i / static_cast<std::size_t>(z.columns)] * (rs[i] - azs[i]);
    }
    to_device(z.data, zs, z.type, stream);
    ++calls;
    if (fails && world().rank() == world().size() - 1) throw Error(ErrorKind::resources, "no room for a coarse grid");
  }

  DistributedMatrix* matrix_ = nullptr;
  std::unique_ptr<Product> product_;
  HostVector<double> diagonal_;
};

void takes_a_preconditioner_of_the_program(const Case& c) {
  System system(c, "elasticity:n=4,clamp=0.3", 2);
  const HostCsr a = whole_matrix("elasticity:n=4,clamp=0.3");
  OwnJacobi own;
  SolverOptions options = options_of("fgmres", "none", c);
  options.columns = 2, options.own_preconditioner = own.functions();
  Solver solver(system.at.matrix, options);
  const SolveResult result = solver.solve(system.b, system.x);
  EXPECT_TRUE(result.converged());
  for (std::int64_t j = 0; j < 2; ++j)
    EXPECT_LE(system.residual(a, j), 1.1 * *options.rtol * result.columns[static_cast<std::size_t>(j)].norm_of_b);
  if (c.backend == BackendChoice::host) EXPECT_EQ(own.calls, result.iterations);
  else EXPECT_GE(own.calls, result.iterations);  // the host looks only now and then whether the device is done
  options.own_preconditioner.reset();
  system.x.fill(0, system.stream());
  EXPECT_LT(result.iterations, Solver(system.at.matrix, options).solve(system.b, system.x).iterations);

  solver.refresh();
  EXPECT_EQ(own.set_ups, 1);
  EXPECT_EQ(own.refreshes, 1);
  own.fails = true;
  system.x.fill(0, system.stream());
  EXPECT_NE(error_of(ErrorKind::resources, [&] { solver.solve(system.b, system.x); }).find("coarse grid"),
            std::string::npos);
  own.fails = false;
  EXPECT_TRUE(solver.solve(system.b, system.x).converged());  // stays usable

  options.own_preconditioner = own.functions(), options.solver = "auto";
  EXPECT_EQ(Solver(system.at.matrix, options).options().solver, "fgmres");
  options.solver = "gmres";
  EXPECT_NE(error_of(ErrorKind::usage, [&] { Solver(system.at.matrix, options); }).find("fgmres"), std::string::npos);
  options.solver = "fgmres", options.preconditioner = "jacobi";
  EXPECT_NE(error_of(ErrorKind::usage, [&] { Solver(system.at.matrix, options); }).find("both"), std::string::npos);
  options.preconditioner = "none", options.own_preconditioner = OwnPreconditioner();
  EXPECT_NE(error_of(ErrorKind::usage, [&] { Solver(system.at.matrix, options); }).find("apply"), std::string::npos);
}
SHARDMAT_VECTOR_TEST(Solver, TakesAPreconditionerOfTheProgram, takes_a_preconditioner_of_the_program)

/// z is r over the diagonal, and unsymmetric by a third of the entry before: classic directions soon are not conjugate any
/// more.
OwnPreconditioner unsymmetric(HostVector<double> diagonal, bool& fails) {
  return host_preconditioner([diagonal = std::move(diagonal), &fails](const ConstDense& r, const Dense& z) {
    Stream stream{Device{}};
    HostVector<double> values = to_host(r.data, r.rows * r.columns, r.type, stream);
    ASSERT_EQ(values.size(), diagonal.size() * static_cast<std::size_t>(r.columns));
    const HostVector<double> rs = values;
    const auto columns = static_cast<std::size_t>(r.columns);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = (rs[i] + (i >= columns ? 0.3 * rs[i - columns] : 0)) / diagonal[i / columns];
    to_device(z.data, values, z.type, stream);
    if (fails && world().rank() == world().size() - 1) throw Error(ErrorKind::resources, "no room for a coarse grid");
  });
}

void takes_a_preconditioner_in_host_memory(const Case& c) {
  for (const LocalSort sort : {LocalSort::none, LocalSort::by_length}) {
    System system(c, "elasticity:n=5,clamp=0.3", 2, sort);
    const HostVector<double> diagonal = system.at.matrix.diagonal(system.stream()).own(system.stream());
    bool fails = false;
    SolverOptions options = options_of("cg", "none", c);
    options.columns = 2, options.own_preconditioner = unsymmetric(diagonal, fails);
    const auto iterations = [&](CgVariant variant, std::string_view method) {
      options.solver = method, options.variant = variant;
      system.x.fill(0, system.stream());
      const SolveResult result = Solver(system.at.matrix, options).solve(system.b, system.x);
      return result.converged() ? result.iterations : options.max_iterations;
    };
    const std::int64_t flexible = iterations(CgVariant::automatic, "cg");
    EXPECT_LT(flexible, 200);
    EXPECT_LT(flexible, iterations(CgVariant::classic, "cg"));
    EXPECT_NE(error_of(ErrorKind::usage, [&] { iterations(CgVariant::automatic, "gmres"); }).find("linear"),
              std::string::npos);
    options.own_preconditioner->linear = true;
    for (const char* method : {"gmres", "bicgstab"}) EXPECT_LT(iterations(CgVariant::automatic, method), 200) << method;
    options.solver = "cg", options.own_preconditioner->linear = false;
    Solver solver(system.at.matrix, options);
    DistributedVector z(system.at.matrix, VectorLayout::rows, c.type, 2);
    solver.precondition(system.b, z);
    const HostVector<double> rs = system.b.own(system.stream()), zs = z.own(system.stream());
    for (std::size_t i = 0; i < zs.size(); ++i) {
      const double expected = (rs[i] + (i >= 2 ? 0.3 * rs[i - 2] : 0)) / diagonal[i / 2];
      EXPECT_NEAR(zs[i], expected, (c.type == ValueType::f64 ? 1e-15 : 1e-6) * std::abs(expected)) << i;
    }
    fails = true;
    EXPECT_NE(error_of(ErrorKind::resources, [&] { solver.precondition(system.b, z); }).find("coarse grid"),
              std::string::npos);
    EXPECT_NE(error_of(ErrorKind::resources, [&] { iterations(CgVariant::flexible, "cg"); }).find("coarse grid"),
              std::string::npos);
  }
}
SHARDMAT_VECTOR_TEST(Solver, TakesAPreconditionerInHostMemory, takes_a_preconditioner_in_host_memory)

/// Where ‖r‖ decides, the last iteration is known as such before it applies M: n iterations take n applications.
void applies_the_preconditioner_once_an_iteration(const Case& c) {
  System system(c, "elasticity:n=5,clamp=0.3", 2);
  const HostVector<double> diagonal = system.at.matrix.diagonal(system.stream()).own(system.stream());
  std::int64_t calls = 0;
  OwnPreconditioner counted = host_preconditioner([&](const ConstDense& r, const Dense& z) {
    ++calls;
    Stream stream{Device{}};
    HostVector<double> values = to_host(r.data, r.rows * r.columns, r.type, stream);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] /= diagonal[i / static_cast<std::size_t>(r.columns)];
    to_device(z.data, values, z.type, stream);
  });
  for (const CgVariant variant : {CgVariant::classic, CgVariant::flexible})
    for (const bool guesses : {false, true}) {
      SolverOptions options = options_of("cg", "none", c);
      options.columns = 2, options.variant = variant, options.own_preconditioner = counted;
      Solver solver(system.at.matrix, options);
      system.x.fill(guesses ? 0.5 : 0, system.stream());
      calls = 0;
      const SolveResult result = solver.solve(system.b, system.x);
      ASSERT_TRUE(result.converged());
      EXPECT_GT(result.iterations, 5);
      if (c.backend == BackendChoice::host) EXPECT_EQ(calls, result.iterations) << name(variant);
      else EXPECT_GE(calls, result.iterations) << name(variant);  // the host sees the end late
    }
}
SHARDMAT_VECTOR_TEST(Solver, AppliesThePreconditionerOnceAnIteration, applies_the_preconditioner_once_an_iteration)

}  // namespace
}  // namespace shardmat
