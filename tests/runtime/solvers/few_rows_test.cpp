// Fewer rows than ranks: ranks without a row take part in every collective call.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>

#include "runtime/matrix/vectors.h"
#include "runtime/run/iteration_parts.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/solver.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

void solve_few_rows(const Case& c, int rows, const SolverOptions& options) {
  test::TestMatrix at(c, fmt::format("poisson7:n=1,nz={}", rows), LocalSort::none);
  Stream& stream = at.context.stream();
  DistributedVector b(at.matrix, VectorLayout::rows, c.type, options.columns),
      x(at.matrix, VectorLayout::rows, c.type, options.columns);
  HostVector<double> values;
  for (const std::int64_t id : b.ids())
    for (std::int64_t j = 0; j < options.columns; ++j) values.push_back(1 + static_cast<double>(id + 3 * j));
  to_device(b.view().data, values, c.type, stream);
  x.fill(0, stream);
  Solver solver(at.matrix, options);
  const SolveResult result = solver.solve(b, x);
  EXPECT_TRUE(result.converged());
  const auto parts = measure_iteration_parts(solver, 1e-3, result.iterations + 1, false);
  EXPECT_EQ(parts.front().name, "product");
  EXPECT_EQ(parts.back().name, "vectors");
}

/// Every method, variant and preconditioner.
void every_solver(const Case& c) {
  for (int rows = 1; rows <= 3; ++rows)
    for (const MethodEntry& method : methods())
      for (const CgVariant variant :
           {CgVariant::automatic, CgVariant::classic, CgVariant::single_reduction, CgVariant::flexible})
        for (const PreconditionerEntry& preconditioner : preconditioners())
          for (const std::int64_t columns : {1, 2}) {
            if (!test::is_available(preconditioner.name) || !test::is_taken(preconditioner.name, method.name)) continue;
            if (!method.preconditioner.empty() && method.preconditioner != preconditioner.name) continue;
            if (variant != CgVariant::automatic && (!method.variants || columns > 1)) continue;
            SCOPED_TRACE(
                fmt::format("{} rows, {} {} {} {}", rows, method.name, name(variant), preconditioner.name, columns));
            SolverOptions options;
            options.solver = method.name, options.variant = variant, options.preconditioner = preconditioner.name;
            options.columns = columns;
            options.rtol = c.type == ValueType::f64 ? 1e-9 : 1e-4;
            solve_few_rows(c, rows, options);
          }
}
SHARDMAT_VECTOR_TEST(FewRows, EverySolver, every_solver)

}  // namespace
}  // namespace shardmat
