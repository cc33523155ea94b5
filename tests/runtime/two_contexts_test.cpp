// Two threads of one process work at once, each with a context of its own.
//
// ThreadSanitizer watches this program by hand, because it takes a build of its own:
//   cmake -C deploy/cmake/thread-sanitizer.cmake -B build-threads && cmake --build build-threads --target two_contexts_test
//   TSAN_OPTIONS=suppressions=$PWD/tests/support/thread_sanitizer_suppressions.txt
//     build-threads/tests/runtime/two_contexts_test         (the last two lines are one command)
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "comm/mpi_session.h"
#include "kernels/base/parallel.h"
#include "partition/generators/generator.h"
#include "runtime/api.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {
namespace {

constexpr int kRounds = 100;

class TwoContexts : public testing::Test {
 protected:
  static void SetUpTestSuite() { session_ = std::make_unique<MpiSession>(nullptr, nullptr); }
  static void TearDownTestSuite() { session_.reset(); }
  void SetUp() override {
    if (!mpi_takes_threads()) GTEST_SKIP() << "this MPI offers less than MPI_THREAD_MULTIPLE";
  }

 private:
  static inline std::unique_ptr<MpiSession> session_;
};

// Values are small multiples of 1/8, so that all sums are exact in whatever order they are made.
double entry(std::int64_t i, std::int64_t j) { return static_cast<double>((i * 7 + j * 13) % 17 - 8) / 8; }

HostVector<double> entries(std::int64_t rows, std::int64_t columns, int round) {
  HostVector<double> all;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) all.push_back(entry(i, j + round));
  return all;
}

HostVector<double> values_of(const HostCsr& a, int round) {
  HostVector<double> values(a.values.size());
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = entry(static_cast<std::int64_t>(k), round);
  return values;
}

HostVector<double> multiplied(const HostCsr& a, const HostVector<double>& values, const HostVector<double>& x,
                              std::size_t columns) {
  HostVector<double> y(static_cast<std::size_t>(a.rows) * columns);
  std::fill(y.begin(), y.end(), 0.0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.rows); ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[i]); k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k)
      for (std::size_t j = 0; j < columns; ++j)
        y[i * columns + j] += values[k] * x[static_cast<std::size_t>(a.col_idx[k]) * columns + j];
  return y;
}

HostVector<double> column_dots(const HostVector<double>& x, const HostVector<double>& y, std::size_t columns) {
  HostVector<double> sums(columns);
  std::fill(sums.begin(), sums.end(), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) sums[i % columns] += x[i] * y[i];
  return sums;
}

/// A product, its vectors and their sums, checked against plain loops.
class Width {
 public:
  Width(DistributedMatrix& matrix, std::int64_t columns)
      : matrix_(matrix),
        stream_(matrix.context().stream()),
        product_(matrix.product(columns)),
        x_(matrix, VectorLayout::columns, ValueType::f64, columns),
        y_(matrix, VectorLayout::rows, ValueType::f64, columns),
        sums_(matrix.context(), columns),
        result_(matrix.context().device(), static_cast<std::size_t>(columns) * sizeof(double)) {}

  void check(const HostCsr& a, const HostVector<double>& values, int round) {
    const auto columns = static_cast<std::size_t>(product_->columns());
    const HostVector<double> x = entries(a.cols, product_->columns(), round);
    HostVector<double> expected = multiplied(a, values, x, columns);
    x_.set_own(x, stream_);
    product_->multiply(1, x_.view(), 0, y_.view(), stream_);
    product_->wait(stream_);
    EXPECT_TRUE(y_.own(stream_) == expected) << "product of " << columns << " in round " << round;
    axpy({2}, x_, y_, stream_);  // y + 2x
    scale({0.5}, y_, stream_);
    xpay(x_, {-4}, y_, stream_);  // x - 4·(y + 2x)/2
    for (std::size_t i = 0; i < x.size(); ++i) expected[i] = x[i] - 2 * (expected[i] + 2 * x[i]);
    EXPECT_TRUE(y_.own(stream_) == expected) << "vector operations of " << columns << " in round " << round;
    sums_.dot(x_, y_, result_.as<double>(), stream_);
    EXPECT_TRUE(result() == column_dots(x, expected, columns)) << "dot products of " << columns << " in round " << round;
    sums_.norm(x_, result_.as<double>(), stream_);
    HostVector<double> norms = column_dots(x, x, columns);
    for (double& norm : norms) norm = std::sqrt(norm);
    EXPECT_TRUE(result() == norms) << "norms of " << columns << " in round " << round;
  }

 private:
  HostVector<double> result() { return to_host(result_.data(), product_->columns(), ValueType::f64, stream_); }

  DistributedMatrix& matrix_;
  Stream& stream_;
  std::unique_ptr<Product> product_;
  DistributedVector x_, y_;
  VectorSums sums_;
  Buffer result_;
};

/// What one thread does, from its own rows to the last product.
void work(Communicator& alone, const std::string& specification) {
  Context context(alone, BackendChoice::host, 1);
  const auto source = make_generator(specification);
  const HostCsr a = source->read_rows(0, source->rows());
  OwnRows rows;
  rows.range = {0, a.rows};
  rows.cols = a.cols;
  rows.row_ptr = a.row_ptr, rows.columns = a.col_idx, rows.values = a.values.data();
  MatrixOptions options;
  options.values = Values::updatable;
  DistributedMatrix matrix(take_rows(rows, context), context, options);
  Width one(matrix, 1), four(matrix, 4);
  for (int round = 0; round < kRounds; ++round) {
    const HostVector<double> values = values_of(a, round);
    matrix.update_values(values, context.stream());
    one.check(a, values, round);
    four.check(a, values, round);
  }
}

TEST_F(TwoContexts, OfTwoThreadsAtOnce) {
  Communicator first(MPI_COMM_SELF), second(MPI_COMM_SELF);
  const auto guarded = [](Communicator& alone, const char* specification) {
    try {
      work(alone, specification);
    } catch (const std::exception& e) {
      ADD_FAILURE() << specification << ": " << e.what();
    }
  };
  std::thread other(guarded, std::ref(second), "elasticity:n=4");
  guarded(first, "poisson27:n=9");
  other.join();
}

/// Tells how many threads are to read it.
class CountingSource final : public VectorSource {
 public:
  std::string name() const override { return "threads"; }
  HostVector<double> read(std::int64_t begin, std::int64_t end) const override {
    return HostVector<double>(static_cast<std::size_t>(end - begin), thread_count());
  }
};

TEST_F(TwoContexts, CallsTakeTheThreadsOfTheContextAndLeaveThoseOfTheCaller) {
  Communicator alone(MPI_COMM_SELF);
  std::unique_ptr<Context> context;
  std::thread([&] { context = std::make_unique<Context>(alone, BackendChoice::host, 3); }).join();
  const int of_openmp = omp_get_max_threads();
  const ThreadCount mine(2);
  DistributedMatrix matrix(open_matrix("banded:n=27", alone), *context, {});
  DistributedVector x(matrix, VectorLayout::columns, ValueType::f64);
  x.read(CountingSource(), context->stream());
  EXPECT_EQ(x.own(context->stream()), HostVector<double>(27, 3.0));
  EXPECT_EQ(thread_count(), 2);
  EXPECT_EQ(omp_get_max_threads(), of_openmp);
}

}  // namespace
}  // namespace shardmat
