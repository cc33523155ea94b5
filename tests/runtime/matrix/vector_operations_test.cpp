// Sums and updates of vectors, with results and factors on the device.
#include "runtime/matrix/distributed_vector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "runtime/matrix/vectors.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

using test::TestMatrix;
using test::x_at;

void sums_and_updates(const Case& c) {
  for (const std::int64_t columns : {1, 3, 8, 300}) {
    TestMatrix f(c, "elasticity:n=5", LocalSort::none);
    Stream& stream = f.context.stream();
    DistributedVector x(f.matrix, VectorLayout::rows, c.type, columns), y(f.matrix, VectorLayout::rows, c.type, columns);
    const auto set = [&](DistributedVector& v, double factor) {
      HostVector<double> values;
      for (const std::int64_t id : v.ids())
        for (std::int64_t j = 0; j < columns; ++j) values.push_back(factor * x_at(id, j));
      v.set_own(values, stream);
    };
    VectorSums sums(f.context, columns);
    const Buffer result(f.context.device(), static_cast<std::size_t>(columns) * sizeof(double));
    const auto on_host = [&] { return to_host(result.data(), columns, ValueType::f64, stream); };
    set(x, 1), set(y, 2);
    sums.dot(x, y, result.as<double>(), stream);
    f.context.wait(stream, "sum");
    const HostVector<double> dots = on_host();
    for (std::int64_t j = 0; j < columns; ++j) {
      double expected = 0;  // of small multiples of 1/64: exact
      for (std::int64_t i = 0; i < x.rows(); ++i) expected += 2 * x_at(i, j) * x_at(i, j);
      EXPECT_EQ(dots[static_cast<std::size_t>(j)], expected) << j;
    }
    for (const double theirs : world().all_gather(dots[0])) EXPECT_EQ(theirs, dots[0]);

    // Recorded, with factors of the device.
    Graph graph(stream, [&] {
      axpy({-0.5, result.as<double>()}, x, y, stream);
      xpay(x, {2}, y, stream);
      scale({0.5}, y, stream);
    });
    set(y, 2);
    graph.launch(stream);
    stream.synchronize();
    const HostVector<double> found = y.own(stream);
    std::size_t at = 0;
    for (const std::int64_t id : y.ids())
      for (std::int64_t j = 0; j < columns; ++j, ++at) {
        const double xs = x_at(id, j), after = 0.5 * (xs + 2 * (2 * xs - 0.5 * dots[static_cast<std::size_t>(j)] * xs));
        ASSERT_NEAR(found[at], after, 16 * unit_roundoff(c.type) * (1 + std::abs(dots[static_cast<std::size_t>(j)]))) << j;
      }
    sums.norm(x, result.as<double>(), stream);
    f.context.wait(stream, "sum");
    EXPECT_DOUBLE_EQ(on_host()[0], std::sqrt(dots[0] / 2));
    copy(x, y, stream);
    EXPECT_EQ(y.own(stream), x.own(stream));
  }
}

SHARDMAT_VECTOR_TEST(VectorOperations, SumsAndUpdates, sums_and_updates)

/// Parts differ on some ranks only; all must refuse.
TEST(VectorOperations, OnAnotherMapIsRefused) {
  TestMatrix f(kHost64, "banded:n=50", LocalSort::none), g(kHost64, "banded:n=50", LocalSort::by_length);
  Stream& stream = f.context.stream();
  DistributedVector x(f.matrix, VectorLayout::rows, ValueType::f64), y(g.matrix, VectorLayout::rows, ValueType::f64);
  VectorSums sums(f.context, 1);
  double result = 0;
  EXPECT_NE(error_of(ErrorKind::usage, [&] { sums.dot(x, y, &result, stream); }).find("different row maps"),
            std::string::npos);
  x.fill(2, stream);
  sums.dot(x, x, &result, stream);
  EXPECT_EQ(result, 200);
}

TEST(VectorOperations, WrongSizesAreRefused) {
  TestMatrix f(kHost64, "banded:n=50", LocalSort::none);
  DistributedVector x(f.matrix, VectorLayout::rows, ValueType::f64, 2), y(f.matrix, VectorLayout::rows, ValueType::f64, 3);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { axpy({1}, x, y, f.context.stream()); }).find("50 × 2 of f64"),
            std::string::npos);
}

}  // namespace
}  // namespace shardmat
