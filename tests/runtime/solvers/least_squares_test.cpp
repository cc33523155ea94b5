// Least squares on all ranks, for matrices of any shape. SciPy's solutions: tests/cli/test_transpose.py.
#include "runtime/solvers/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/product.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/matrix/test_matrix.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

using test::options_for;
using test::value_of;

/// Values that differ from entry to entry.
void fill(DistributedVector& vector, std::uint64_t seed, Stream& stream) {
  HostVector<double> values;
  for (const std::int64_t id : vector.map()->ids_by_place())
    values.push_back(value_of(seed + static_cast<std::uint64_t>(id)));
  vector.set_own(values, stream);
}

double norm_of(Context& context, const DistributedVector& vector) {
  VectorSums sums(context, 1);
  const Buffer result(context.device(), sizeof(double));
  sums.norm(vector, result.as<double>(), context.stream());
  double norm = 0;
  copy_to_host(&norm, result.data(), sizeof norm, context.stream());
  return norm;
}

void solves(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  const double rtol = c.type == ValueType::f64 ? 1e-11 : 1e-5;
  const double rounding = c.type == ValueType::f64 ? 0x1p-53 : 0x1p-24;
  for (const char* specification : {"random:n=300,cols=120", "random:n=120,cols=300", "elasticity:n=4,clamp=0.1"}) {
    DistributedMatrix matrix(open_matrix(specification, world()), context, options_for(c));
    const auto transposed = matrix.transposed_product(1);
    const auto product = matrix.product(1);
    for (const char* method : {"lsqr", "cgls"}) {
      SCOPED_TRACE(std::string(specification) + ", " + method);
      LeastSquaresOptions options;
      options.method = method, options.rtol = rtol;
      DistributedVector b(matrix, VectorLayout::rows, c.type), x(matrix, VectorLayout::columns, c.type),
          r(matrix, VectorLayout::rows, c.type), normal(matrix, VectorLayout::columns, c.type);
      fill(b, 1000, stream);
      const LeastSquaresResult result = solve_least_squares(matrix, b, x, options);
      ASSERT_TRUE(result.converged()) << result.explanation() << " " << result.residual << " " << result.normal_residual;
      copy(b, r, stream);
      product->multiply(-1, x.view(), 1, r.view(), stream);
      transposed->multiply(1, r.view(), 0, normal.view(), stream);
      // r is formed in the type of the vectors, here by one of several kernels.
      EXPECT_NEAR(norm_of(context, r), result.residual,
                  1e-6 * result.residual + rounding * (result.norm_of_b + result.norm_of_a * result.norm_of_x));
      const bool solved = norm_of(context, r) <= 1.01 * rtol * (result.norm_of_b + result.norm_of_a * result.norm_of_x);
      const bool shortest = norm_of(context, normal) <= 1.01 * rtol * result.norm_of_a * norm_of(context, r);
      EXPECT_TRUE(solved || shortest);
      EXPECT_EQ(std::ssize(result.history), result.iterations + 1);

      DistributedVector again(matrix, VectorLayout::columns, c.type);
      if (c.backend == BackendChoice::host) {
        solve_least_squares(matrix, b, again, options);
        EXPECT_EQ(x.own(stream), again.own(stream)) << "other bits the second time";
      }
      const LeastSquaresResult more = solve_least_squares(matrix, b, x, options);  // little is left: what ‖A‖ is
      EXPECT_TRUE(more.converged());
      EXPECT_LT(2 * more.iterations, result.iterations);
    }
  }
}
SHARDMAT_VECTOR_TEST(LeastSquares, Solves, solves)

TEST(LeastSquares, Refuses) {
  Context& context = context_of(kHost64);
  Stream& stream = context.stream();
  DistributedMatrix matrix(open_matrix("random:n=50,cols=30", world()), context, options_for(kHost64));
  DistributedVector b(matrix, VectorLayout::rows, ValueType::f64), x(matrix, VectorLayout::columns, ValueType::f64);
  LeastSquaresOptions options;
  EXPECT_THROW(solve_least_squares(matrix, x, b, options), Error);
  options.method = "lsqrt";
  EXPECT_NE(error_of(ErrorKind::usage, [&] { solve_least_squares(matrix, b, x, options); }).find("lsqr"), std::string::npos);
  options.method = "lsqr";
  b.fill(std::nan(""), stream);
  EXPECT_NE(error_of(ErrorKind::input, [&] { solve_least_squares(matrix, b, x, options); }).find("b holds NaN"),
            std::string::npos);
  b.fill(0, stream);
  const LeastSquaresResult nothing = solve_least_squares(matrix, b, x, options);
  EXPECT_TRUE(nothing.converged());
  EXPECT_EQ(nothing.iterations, 0);
}

}  // namespace
}  // namespace shardmat
