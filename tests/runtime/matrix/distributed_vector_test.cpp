// Vectors on the ranks, and their sums and updates.
#include "runtime/matrix/distributed_vector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <vector>

#include "runtime/matrix/vector_operations.h"
#include "runtime/matrix/vectors.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

using test::x_at;

struct Fixture {
  Context& context;
  DistributedMatrix matrix;
  Fixture(const Case& c, const char* specification, LocalSort sort)
      : context(context_of(c)), matrix(open_matrix(specification, world()), context, options(c, sort)) {}
  static LoadOptions options(const Case& c, LocalSort sort) {
    LoadOptions load;
    load.type = c.type, load.exchange = c.exchange, load.sort = sort;
    return load;
  }
  /// x_at() of each original index.
  HostVector<double> all(std::int64_t rows, std::int64_t columns) const {
    HostVector<double> values;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) values.push_back(x_at(i, j));
    return values;
  }
};

void scatters_and_gathers(const Case& c) {
  for (const LocalSort sort : {LocalSort::none, LocalSort::by_length})
    for (const char* specification : {"elasticity:n=5", "random:n=40,cols=70"})
      for (const std::int64_t columns : {1, 3})
        for (const VectorLayout layout : {VectorLayout::rows, VectorLayout::columns}) {
          Fixture f(c, specification, sort);
          Stream& stream = f.context.stream();
          DistributedVector v(f.matrix, layout, c.type, columns);
          const HostVector<double> all = f.all(v.rows(), columns);
          const bool root = world().rank() == 0;
          v.scatter(root ? std::span<const double>(all) : std::span<const double>(), stream);
          EXPECT_EQ(v.gather(stream), root ? all : HostVector<double>());
          const HostVector<double> local = to_host(v.view().data, v.local_rows() * columns, c.type, stream);
          for (std::size_t i = 0; i < v.ids().size(); ++i)
            for (std::int64_t j = 0; j < columns; ++j)
              ASSERT_EQ(local[i * static_cast<std::size_t>(columns) + static_cast<std::size_t>(j)], x_at(v.ids()[i], j));
          const HostVector<double> own = v.own(stream);
          v.fill(3, stream);
          EXPECT_EQ(v.own(stream), HostVector<double>(own.size(), 3.0));
          v.set_own(own, stream);
          EXPECT_EQ(v.gather(stream), root ? all : HostVector<double>());
          const std::string path =
              world().broadcast((std::filesystem::temp_directory_path() / "shardmat_vector.npy").string());
          v.write(path, "v", stream);
          v.fill(0, stream);
          v.read(*open_vector(path, "v", v.rows(), 0, columns), stream);
          EXPECT_EQ(v.own(stream), own);
          world().barrier();
          if (root) std::filesystem::remove(path);
        }
}

void sums_and_updates(const Case& c) {
  for (const std::int64_t columns : {1, 3, 8, 300}) {
    Fixture f(c, "elasticity:n=5", LocalSort::none);
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
    if (f.context.nccl() != nullptr) f.context.nccl()->wait(stream, "sum");
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
    if (f.context.nccl() != nullptr) f.context.nccl()->wait(stream, "sum");
    EXPECT_DOUBLE_EQ(on_host()[0], std::sqrt(dots[0] / 2));
    copy(x, y, stream);
    EXPECT_EQ(y.own(stream), x.own(stream));
  }
}

#define SHARDMAT_VECTOR_TEST(name, check)                            \
  TEST(DistributedVector, name##F64) { check(kHost64); }             \
  TEST(DistributedVector, name##F32) { check(kHost32); }             \
  TEST(GpuDistributedVector, name##F64) { on_gpus(check, kCuda64); } \
  TEST(GpuDistributedVector, name##F32) { on_gpus(check, kCuda32); } \
  TEST(MultiGpuDistributedVector, name##F64) { on_gpus(check, kCuda64); }

SHARDMAT_VECTOR_TEST(ScattersAndGathers, scatters_and_gathers)
SHARDMAT_VECTOR_TEST(SumsAndUpdates, sums_and_updates)

/// Parts differ on some ranks only; all must refuse.
TEST(DistributedVector, OfAnotherMatrixIsRefused) {
  Fixture f(kHost64, "banded:n=50", LocalSort::none), g(kHost64, "banded:n=50", LocalSort::by_length);
  Stream& stream = f.context.stream();
  DistributedVector x(f.matrix, VectorLayout::rows, ValueType::f64), y(g.matrix, VectorLayout::rows, ValueType::f64);
  VectorSums sums(f.context, 1);
  double result = 0;
  EXPECT_NE(error_of(ErrorKind::usage, [&] { sums.dot(x, y, &result, stream); }).find("different matrices"),
            std::string::npos);
  x.fill(2, stream);
  sums.dot(x, x, &result, stream);
  EXPECT_EQ(result, 200);
}

TEST(DistributedVector, HalvesComeBack) {
  Fixture f(kHost64, "banded:n=50", LocalSort::none);
  Stream& stream = f.context.stream();
  DistributedVector x(f.matrix, VectorLayout::rows, ValueType::bf16);
  x.fill(1.5, stream);
  EXPECT_EQ(x.own(stream), HostVector<double>(static_cast<std::size_t>(x.local_rows()), 1.5));
}

TEST(DistributedVector, WrongSizesAreRefused) {
  Fixture f(kHost64, "banded:n=50", LocalSort::none);
  Stream& stream = f.context.stream();
  DistributedVector x(f.matrix, VectorLayout::rows, ValueType::f64, 2), y(f.matrix, VectorLayout::rows, ValueType::f64, 3);
  const HostVector<double> few(1);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { x.set_own(few, stream); }).find("1 values for"), std::string::npos);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { x.scatter(few, stream); }).find("1 values came"), std::string::npos);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { axpy({1}, x, y, stream); }).find("50 × 2 of f64"), std::string::npos);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { DistributedVector(f.matrix, VectorLayout::rows, ValueType::f64, 0); })
                .find("0 columns"),
            std::string::npos);
}

}  // namespace
}  // namespace shardmat
