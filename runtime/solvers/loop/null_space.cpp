#include "runtime/solvers/loop/null_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/vector_operations.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/random_entries.h"
#include "runtime/solvers/loop/symmetry.h"

namespace shardmat {
namespace {

class MeanFree final : public Preconditioner {
 public:
  MeanFree(std::unique_ptr<Preconditioner> inner, const DistributedMatrix& matrix, std::int64_t columns)
      : inner_(std::move(inner)), remove_mean_(matrix, columns) {}

  void refresh(Stream& stream) override { inner_->refresh(stream); }
  void project(const Dense& r, Stream& stream) const override { remove_mean_(r, stream); }
  void expect(double norm) const override { inner_->expect(norm); }
  std::int64_t usual_iterations() const override { return inner_->usual_iterations(); }
  void apply(const Dense& r, const Dense& z, Stream& stream) const override {
    inner_->apply(r, z, stream);
    remove_mean_(z, stream);
  }
  std::int64_t apply_bytes() const override {
    const std::int64_t inner = inner_->apply_bytes(), vector = remove_mean_.device_bytes();
    return inner == 0 ? 0 : inner + 5 * vector;  // the mean: two vectors; its removal: three
  }
  std::int64_t device_bytes() const override { return inner_->device_bytes() + remove_mean_.device_bytes(); }
  std::string describe() const override { return inner_->describe(); }
  const MultigridReport* multigrid() const override { return inner_->multigrid(); }
  const multigrid::Hierarchy* hierarchy() const override { return inner_->hierarchy(); }

 private:
  std::unique_ptr<Preconditioner> inner_;
  MeanRemover remove_mean_;
};

}  // namespace

ConstantsProbe probe_constants(const Product& product, Stream& stream) {
  const DistributedMatrix& matrix = product.matrix();
  Context& context = matrix.context();
  const ValueType type = sum_type(matrix.type());
  const std::int64_t columns = product.columns();
  DistributedVector ones(matrix, VectorLayout::rows, type, columns), x(matrix, VectorLayout::rows, type, columns),
      y(matrix, VectorLayout::rows, type, columns);
  VectorSums sums(context, columns);
  Buffer on_device;
  context.communicator().run_agreed(
      [&] { on_device = Buffer(context.device(), static_cast<std::size_t>(columns) * sizeof(double)); });
  const auto product_with = [&](const DistributedVector& left) {  // of y = A·(the vector before); all columns are alike
    sums.dot(left, y, on_device.as<double>(), stream);
    product.wait(stream);
    double value = 0;
    copy_to_host(&value, on_device.data(), sizeof value, stream);
    return value;
  };
  ConstantsProbe probe;
  probe.allowed = (type == ValueType::f64 ? 1e-10 : 1e-5) * sum_of_magnitudes(product, stream) /
                  std::sqrt(static_cast<double>(matrix.rows()));
  ones.fill(1, stream);
  product.multiply(1, ones.view(), 0, y.view(), stream);
  probe.of_rows = std::sqrt(product_with(y));
  constexpr std::uint64_t kAttempts = 3;
  for (std::uint64_t seed = 1; seed <= kAttempts; ++seed) {
    fill_random(x, seed, Entries::signs, stream);
    product.multiply(1, x.view(), 0, y.view(), stream);
    probe.of_columns = std::max(probe.of_columns, std::abs(product_with(ones)));
  }
  return probe;
}

bool maps_parts_to_zero(const Product& product, double allowed, Stream& stream) {
  constexpr std::int64_t kMostUnknowns = 6;
  const DistributedMatrix& matrix = product.matrix();
  Context& context = matrix.context();
  const ValueType type = sum_type(matrix.type());
  const auto columns = static_cast<std::size_t>(product.columns());
  DistributedVector x(matrix, VectorLayout::rows, type, product.columns()),
      y(matrix, VectorLayout::rows, type, product.columns());
  VectorSums sums(context, product.columns());
  Buffer on_device;
  context.communicator().run_agreed([&] { on_device = Buffer(context.device(), columns * sizeof(double)); });
  const auto maps = [&](const auto& takes) {
    context.communicator().run_agreed([&] {
      HostVector<double> part(matrix.y_rows()->ids().size() * columns);
      for (std::size_t i = 0; i < part.size(); ++i) part[i] = takes(matrix.y_rows()->ids()[i / columns]) ? 1 : 0;
      to_device(x.view().data, part, type, stream);
    });
    product.multiply(1, x.view(), 0, y.view(), stream);
    sums.dot(y, y, on_device.as<double>(), stream);
    product.wait(stream);
    double square = 0;
    copy_to_host(&square, on_device.data(), sizeof square, stream);
    return std::sqrt(square) <= allowed;
  };
  for (std::int64_t m = 2; m <= kMostUnknowns; ++m) {
    if (matrix.rows() % m != 0 || matrix.rows() <= m) continue;
    if (maps([m](std::int64_t row) { return row % m == 0; })) return true;
    if (maps([first = matrix.rows() / m](std::int64_t row) { return row < first; })) return true;
  }
  return false;
}

void require_constant_null_space(const Product& product, Stream& stream) {
  if (product.matrix().rows() == 0) return;
  const auto [of_rows, of_columns, allowed] = probe_constants(product, stream);
  product.matrix().context().communicator().run_agreed([&, of_rows = of_rows, of_columns = of_columns, allowed = allowed] {
    if (!(of_rows <= allowed))
      throw Error(
          ErrorKind::usage,
          fmt::format("constant vectors are not in the null space of this matrix: the sums of its rows have the norm "
                      "{:.2g}, above rounding errors ({:.2g}). Leave the null space out",
                      of_rows, allowed),
          "null_space");
    if (!(of_columns <= allowed))
      throw Error(ErrorKind::usage,
                  fmt::format("this matrix maps constant vectors to 0, but its transpose does not: the columns sum to about "
                              "{:.2g}, above rounding errors ({:.2g}). Removing the mean of b would not make the system "
                              "consistent; leave the null space out and take gmres",
                              of_columns, allowed),
                  "null_space");
  });
}

MeanRemover::MeanRemover(const DistributedMatrix& matrix, std::int64_t columns)
    : rows_(static_cast<double>(std::max<std::int64_t>(1, matrix.rows()))),
      ones_(matrix, VectorLayout::rows, sum_type(matrix.type()), columns),
      sum_(matrix.context().exchange_context(sum_type(matrix.type()), 1), static_cast<int>(2 * columns)) {
  Context& context = matrix.context();
  context.communicator().run_agreed([&] {
    dots_.emplace(context.device(), columns);
    sums_ = Buffer(context.device(), static_cast<std::size_t>(2 * columns) * sizeof(double));
    fill_bytes(sums_.data(), 0, sums_.bytes(), context.stream());
  });
  ones_.fill(1, context.stream());
}

void MeanRemover::sum(const Dense& x, const Dense& y, double* result, Stream& stream) const {
  dots_->compute(ones_.type(), ones_.local_rows(), x.data, y.data, result, stream);
}

void MeanRemover::operator()(const Dense& vector, Stream& stream) const {
  sum(vector, ones_.view(), sums_.as<double>(), stream);
  sum_(sums_.as<double>(), stream);
  combine(ones_.type(), ones_.local_rows(), ones_.columns(), {-1 / rows_, sums_.as<double>()}, ones_.view().data, {1},
          vector.data, stream);
}

MeanRemover::Measures MeanRemover::measure(const Product& product, const DistributedVector& vector, Stream& stream) const {
  const auto columns = static_cast<std::size_t>(ones_.columns());
  sum(vector.view(), vector.view(), sums_.as<double>(), stream);
  sum(vector.view(), ones_.view(), sums_.as<double>() + columns, stream);
  sum_(sums_.as<double>(), stream);
  product.wait(stream);
  std::vector<double> sums(2 * columns);
  copy_to_host(sums.data(), sums_.data(), sums_.bytes(), stream);
  Measures measures;
  for (std::size_t j = 0; j < columns; ++j) {
    measures.norms.push_back(std::sqrt(sums[j]));
    measures.means.push_back(sums[columns + j] / rows_);
  }
  return measures;
}

std::int64_t MeanRemover::device_bytes() const {
  return ones_.local_rows() * ones_.columns() * static_cast<std::int64_t>(size_of(ones_.type()));
}

std::unique_ptr<Preconditioner> make_mean_free(std::unique_ptr<Preconditioner> preconditioner,
                                               const DistributedMatrix& matrix, std::int64_t columns) {
  return std::make_unique<MeanFree>(std::move(preconditioner), matrix, columns);
}

}  // namespace shardmat
