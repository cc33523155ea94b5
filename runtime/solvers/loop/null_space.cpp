#include "runtime/solvers/loop/null_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/basis_passes.h"
#include "runtime/solvers/loop/first_column_dot.h"
#include "runtime/solvers/loop/random_entries.h"
#include "runtime/solvers/loop/symmetry.h"

namespace shardmat {
namespace {

class Projected final : public Preconditioner {
 public:
  Projected(std::unique_ptr<Preconditioner> inner, std::shared_ptr<const NullSpaceProjector> project)
      : inner_(std::move(inner)), project_(std::move(project)) {}

  void refresh(Stream& stream) override { inner_->refresh(stream); }
  void project(const Dense& r, Stream& stream) const override { (*project_)(r, stream); }
  void expect(double norm) const override { inner_->expect(norm); }
  std::int64_t usual_iterations() const override { return inner_->usual_iterations(); }
  bool varies() const override { return inner_->varies(); }
  bool capturable() const override { return inner_->capturable(); }
  void apply(const Dense& r, const Dense& z, Stream& stream) const override {
    inner_->apply(r, z, stream);
    (*project_)(z, stream);
  }
  std::int64_t apply_bytes() const override {
    const std::int64_t inner = inner_->apply_bytes(), basis = project_->device_bytes();
    return inner == 0 ? 0 : inner + 2 * basis + 3 * basis / project_->count();
  }
  std::int64_t device_bytes() const override { return inner_->device_bytes() + project_->device_bytes(); }
  std::string describe() const override { return inner_->describe(); }
  const MultigridReport* multigrid() const override { return inner_->multigrid(); }
  const multigrid::Hierarchy* hierarchy() const override { return inner_->hierarchy(); }
  const NullVectors* null_vectors() const override { return inner_->null_vectors(); }
  const DirectReport* direct() const override { return inner_->direct(); }

 private:
  std::unique_ptr<Preconditioner> inner_;
  std::shared_ptr<const NullSpaceProjector> project_;
};

/// A vector is a combination of others where less than this share is left of it.
constexpr double kDependentVector = 1e-8;

/// ConstantsProbe::allowed.
double allowed_residue(const Product& product, Stream& stream) {
  const DistributedMatrix& matrix = product.matrix();
  return (sum_type(matrix.type()) == ValueType::f64 ? 1e-10 : 1e-5) * sum_of_magnitudes(product, stream) /
         std::sqrt(static_cast<double>(matrix.rows()));
}

}  // namespace

ConstantsProbe probe_constants(const Product& product, Stream& stream) {
  const DistributedMatrix& matrix = product.matrix();
  const ValueType type = sum_type(matrix.type());
  const std::int64_t columns = product.columns();
  DistributedVector ones(matrix, VectorLayout::rows, type, columns), x(matrix, VectorLayout::rows, type, columns),
      y(matrix, VectorLayout::rows, type, columns);
  FirstColumnDot dot(matrix.context(), columns, [&] { product.wait(stream); });
  ConstantsProbe probe;
  probe.allowed = allowed_residue(product, stream);
  ones.fill(1, stream);
  product.multiply(1, ones.view(), 0, y.view(), stream);
  probe.of_rows = std::sqrt(dot(y, y, stream));
  constexpr std::uint64_t kAttempts = 3;
  for (std::uint64_t seed = 1; seed <= kAttempts; ++seed) {
    fill_random(x, seed, Entries::signs, stream);
    product.multiply(1, x.view(), 0, y.view(), stream);
    probe.of_columns = std::max(probe.of_columns, std::abs(dot(ones, y, stream)));
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
  FirstColumnDot dot(context, product.columns(), [&] { product.wait(stream); });
  const auto maps = [&](const auto& takes) {
    context.communicator().run_agreed([&] {
      HostVector<double> part(matrix.y_rows()->ids().size() * columns);
      for (std::size_t i = 0; i < part.size(); ++i) part[i] = takes(matrix.y_rows()->ids()[i / columns]) ? 1 : 0;
      to_device(x.view().data, part, type, stream);
    });
    product.multiply(1, x.view(), 0, y.view(), stream);
    return std::sqrt(dot(y, y, stream)) <= allowed;
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

std::string NullVectors::describe() const {
  constexpr std::size_t kNamed = 4;
  if (too_many)
    return fmt::format("more than {} motions of parts that nothing holds (or more than {} parts): they are not removed",
                       kMost, human_count(kMostBodies));
  if (!other.empty()) return other;
  if (bodies.empty() || (constants && bodies.size() == 1)) return "constant vectors";
  std::string text = constants
                         ? fmt::format("constants of {} parts: ", bodies.size())
                         : fmt::format("{} of {}: ", human_count(count, "motion"),
                                       bodies.size() == 1 ? "a body that nothing holds"
                                                          : fmt::format("{} bodies that nothing holds", bodies.size()));
  for (std::size_t i = 0; i < std::min(kNamed, bodies.size()); ++i)
    text += fmt::format("{}{} from node {} on", i == 0 ? "" : ", ", human_count(bodies[i].nodes, "node"),
                        human_count(bodies[i].first_node));
  return text + (bodies.size() > kNamed ? ", …" : "");
}

NullVectors constant_vectors(const DistributedMatrix& matrix) {
  NullVectors ones;
  ones.count = 1, ones.constants = true;
  ones.of_own.assign(static_cast<std::size_t>(matrix.y_rows()->local_rows()), 1.0);
  return ones;
}

NullVectors basis_of(const DistributedMatrix& matrix, const NearNullVectors& given) {
  Communicator& ranks = matrix.context().communicator();
  const auto rows = static_cast<std::size_t>(matrix.y_rows()->local_rows()), m = static_cast<std::size_t>(given.count);
  NullVectors basis;
  basis.count = given.count;
  ranks.run_agreed([&] {
    if (given.count < 1 || given.count > NullVectors::kMost)
      throw Error(ErrorKind::usage,
                  fmt::format("there are {} vectors of the null space; give 1 to {}", given.count, NullVectors::kMost),
                  "null_vectors");
    if (given.of_own.size() != rows * m)
      throw Error(ErrorKind::usage,
                  fmt::format("{} vectors of the null space come with {} values, but this rank has {} rows; give {} values",
                              m, given.of_own.size(), rows, rows * m),
                  "null_vectors");
    if (!std::all_of(given.of_own.begin(), given.of_own.end(), [](double value) { return std::isfinite(value); }))
      throw Error(ErrorKind::input, "the vectors of the null space hold NaN or infinity", "null_vectors");
    basis.of_own = given.of_own;
  });
  HostVector<double>& values = basis.of_own;
  const double wanted = std::sqrt(static_cast<double>(matrix.rows()));
  const auto scale = [&](std::size_t v, double factor) {
    for (std::size_t i = 0; i < rows; ++i) values[i * m + v] *= factor;
  };
  /// With the vectors up to `v`.
  const auto products = [&](std::size_t v) {
    std::vector<double> sums(v + 1, 0.0);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t u = 0; u <= v; ++u) sums[u] += values[i * m + u] * values[i * m + v];
    ranks.all_reduce(std::span<double>(sums), Reduction::sum);
    return sums;
  };
  for (std::size_t v = 0; v < m; ++v) {
    double largest = 0;
    for (std::size_t i = 0; i < rows; ++i) largest = std::max(largest, std::abs(values[i * m + v]));
    largest = ranks.all_reduce(largest, Reduction::max);
    if (largest > 0) scale(v, 1 / largest);  // squares neither overflow nor underflow
    double left = std::sqrt(products(v)[v]);
    const double all = left;
    for (int pass = 0; pass < 2; ++pass) {  // Gram and Schmidt, twice
      const std::vector<double> sums = products(v);
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t u = 0; u < v; ++u) values[i * m + v] -= sums[u] / (wanted * wanted) * values[i * m + u];
      left = std::sqrt(products(v)[v]);
    }
    ranks.run_agreed([&] {
      if (!(left > kDependentVector * all))
        throw Error(ErrorKind::input,
                    fmt::format("vector {} of the {} of the null space {}; leave it out", v + 1, m,
                                all > 0 ? "is a combination of those before it" : "is 0 in all unknowns"),
                    "null_vectors");
    });
    scale(v, wanted / left);
  }
  return basis;
}

void require_null_space(const NullSpaceProjector& vectors, const Product& product, Stream& stream) {
  const bool of_rows = vectors.are_mapped_to_zero(product, stream);
  const NullSpaceProjector::TransposeProbe probe = vectors.probe_transpose(product, stream);
  product.matrix().context().communicator().run_agreed([&] {
    if (!of_rows)
      throw Error(ErrorKind::usage,
                  "vectors of the null space are given that this matrix does not map to 0 up to rounding; leave them out",
                  "null_vectors");
    if (!probe.maps_to_zero())
      throw Error(ErrorKind::usage,
                  fmt::format("this matrix maps the vectors of the null space to 0, but its transpose does not: their "
                              "products with A·x are up to {:.2g}, above rounding errors ({:.2g}). Removing them from b "
                              "would not make the system consistent; leave the null space out and take gmres",
                              probe.of_columns, probe.allowed),
                  "null_vectors");
  });
}

NullSpaceProjector::NullSpaceProjector(const DistributedMatrix& matrix, const NullVectors& vectors, std::int64_t columns)
    : map_(matrix.y_rows()),
      type_(sum_type(matrix.type())),
      count_(vectors.count),
      columns_(columns),
      apart_((map_->local_rows() * columns + 3) / 4 * 4),  // GPUs load 16 bytes at once
      sum_(matrix.context().exchange_context(type_, 1), static_cast<int>((vectors.count + 1) * columns)) {
  Context& context = matrix.context();
  context.communicator().run_agreed([&] {
    passes_.emplace(context.device(), static_cast<int>(columns));
    const std::int64_t values = count_ * apart_;
    require_memory(context.device(), values * static_cast<std::int64_t>(size_of(type_)), "the null space");
    basis_ = Buffer(context.device(), static_cast<std::size_t>(values) * size_of(type_));
    sums_ = Buffer(context.device(), static_cast<std::size_t>((count_ + 1) * columns) * sizeof(double));
    HostVector<double> basis(static_cast<std::size_t>(values), 0.0);
    for (std::int64_t row = 0; row < map_->local_rows(); ++row)
      for (std::int64_t v = 0; v < count_; ++v)
        std::fill_n(basis.data() + v * apart_ + row * columns, columns,
                    vectors.of_own[static_cast<std::size_t>(map_->place(static_cast<std::size_t>(row)) * count_ + v)]);
    to_device(basis_.data(), basis, type_, context.stream());
    fill_bytes(sums_.data(), 0, sums_.bytes(), context.stream());
    if (type_ == ValueType::f32) exact_ = vectors.of_own;
  });
}

/// Sums of products with the basis, and of squares.
void NullSpaceProjector::sum(const Dense& vector, Stream& stream) const {
  dispatch(type_, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    BasisPasses<T>(*passes_, map_->context().device(), map_->local_rows(), apart_)
        .dots(basis_.as<T>(), count_, static_cast<T*>(vector.data), sums_.as<double>(), stream);
  });
  sum_(sums_.as<double>(), stream);
}

void NullSpaceProjector::operator()(const Dense& vector, Stream& stream) const {
  sum(vector, stream);
  const double square = static_cast<double>(std::max<std::int64_t>(1, map_->size()));  // of a vector of the basis
  dispatch(type_, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    BasisPasses<T>(*passes_, map_->context().device(), map_->local_rows(), apart_)
        .add(basis_.as<T>(), count_, -1 / square, sums_.as<double>(), nullptr, static_cast<T*>(vector.data), stream);
  });
}

void NullSpaceProjector::remove(std::span<double> of_own, std::int64_t columns) const {
  const auto count = static_cast<std::size_t>(count_), rows = exact_.size() / count,
             width = static_cast<std::size_t>(columns);
  std::vector<double> sums(count * width, 0.0);
  for (std::size_t j = 0; j < width; ++j)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t v = 0; v < count; ++v) sums[j * count + v] += exact_[i * count + v] * of_own[j * rows + i];
  map_->context().communicator().all_reduce(std::span<double>(sums), Reduction::sum);
  const auto square = static_cast<double>(std::max<std::int64_t>(1, map_->size()));
  for (std::size_t j = 0; j < width; ++j)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t v = 0; v < count; ++v) of_own[j * rows + i] -= sums[j * count + v] / square * exact_[i * count + v];
}

NullSpaceProjector::Measures NullSpaceProjector::measure(const Product& product, const DistributedVector& vector,
                                                         Stream& stream) const {
  sum(vector.view(), stream);
  product.wait(stream);
  const auto columns = static_cast<std::size_t>(columns_), count = static_cast<std::size_t>(count_);
  std::vector<double> sums((count + 1) * columns);
  copy_to_host(sums.data(), sums_.data(), sums_.bytes(), stream);
  Measures measures;
  for (std::size_t j = 0; j < columns; ++j) {
    double removed = 0;
    for (std::size_t v = 0; v < count; ++v) removed += sums[v * columns + j] * sums[v * columns + j];
    measures.norms.push_back(std::sqrt(sums[count * columns + j]));
    measures.removed.push_back(std::sqrt(removed / static_cast<double>(std::max<std::int64_t>(1, map_->size()))));
  }
  return measures;
}

bool NullSpaceProjector::are_mapped_to_zero(const Product& product, Stream& stream) const {
  const DistributedMatrix& matrix = product.matrix();
  DistributedVector y(matrix, VectorLayout::rows, type_, columns_);
  FirstColumnDot dot(matrix.context(), columns_, [&] { product.wait(stream); });
  const double allowed = allowed_residue(product, stream);
  bool all = true;
  for (int v = 0; v < count_ && all; ++v) {
    Dense x = y.view();
    x.data = static_cast<std::byte*>(basis_.data()) + static_cast<std::size_t>(v * apart_) * size_of(type_);
    product.multiply(1, x, 0, y.view(), stream);
    all = std::sqrt(dot(y, y, stream)) <= allowed;
  }
  return all;
}

NullSpaceProjector::TransposeProbe NullSpaceProjector::probe_transpose(const Product& product, Stream& stream) const {
  const DistributedMatrix& matrix = product.matrix();
  DistributedVector x(matrix, VectorLayout::rows, type_, columns_), y(matrix, VectorLayout::rows, type_, columns_);
  TransposeProbe probe;
  probe.allowed = allowed_residue(product, stream) * std::sqrt(static_cast<double>(count_));
  constexpr std::uint64_t kAttempts = 3;
  for (std::uint64_t seed = 1; seed <= kAttempts; ++seed) {
    fill_random(x, seed, Entries::signs, stream);
    product.multiply(1, x.view(), 0, y.view(), stream);
    probe.of_columns = std::max(probe.of_columns, measure(product, y, stream).removed.front());
  }
  probe.of_columns *= std::sqrt(static_cast<double>(matrix.rows()));  // products with the vectors
  return probe;
}

std::unique_ptr<Preconditioner> make_projected(std::unique_ptr<Preconditioner> preconditioner,
                                               std::shared_ptr<const NullSpaceProjector> projector) {
  return std::make_unique<Projected>(std::move(preconditioner), std::move(projector));
}

}  // namespace shardmat
