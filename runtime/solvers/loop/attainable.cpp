#include "runtime/solvers/loop/attainable.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/matrix/csr.h"
#include "kernels/vector.h"
#include "runtime/context/context.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/null_space.h"
#include "runtime/solvers/loop/random_entries.h"

namespace shardmat {
namespace {

/// ‖·‖₂ of the columns of row-major values, over all ranks.
std::vector<double> norms_of(const HostVector<double>& values, std::size_t columns, Communicator& ranks) {
  std::vector<double> norms(columns, 0);
  for (std::size_t i = 0; i < values.size(); ++i) norms[i % columns] += values[i] * values[i];
  ranks.all_reduce(std::span<double>(norms), Reduction::sum);
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

std::vector<double> norms_of(const DistributedVector& vector, Stream& stream) {
  Context& context = vector.context();
  std::vector<double> norms(static_cast<std::size_t>(vector.columns()));
  context.communicator().run_agreed([&] {
    ColumnDots dots(context.device(), vector.columns());
    const Buffer squares(context.device(), norms.size() * sizeof(double));
    const void* const data = vector.view().data;
    dots.compute(vector.type(), vector.local_rows(), data, data, squares.as<double>(), stream);
    copy_to_host(norms.data(), squares.data(), squares.bytes(), stream);
  });
  context.communicator().all_reduce(std::span<double>(norms), Reduction::sum);
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

/// Row by row: no number of threads changes a bit.
void sum_magnitudes(const CsrView& a, std::size_t width, const HostVector<double>& x, HostVector<double>& sums) {
  parallel_ranges(a.rows, 1 << 10, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      for (std::size_t j = 0; j < width; ++j) {
        double sum = 0;
        for (auto k = static_cast<std::size_t>(a.row_ptr[i]); k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k)
          sum += std::abs(static_cast<double>(a.values[k])) * x[static_cast<std::size_t>(a.col_idx[k]) * width + j];
        sums[i * width + j] = sum;
      }
  });
}

}  // namespace

double attainable_share(ValueType type) {
  return 2 * (type == ValueType::f64 ? std::numeric_limits<double>::epsilon()
                                     : static_cast<double>(std::numeric_limits<float>::epsilon()));
}

bool RoundingFloor::has_rows() const {
  const bool here = matrix_.has_host_rows() && product_.column_block() == product_.columns() &&
                    &product_.exchange().map() == &matrix_.column_map();
  return matrix_.context().communicator().all_reduce(here ? 1 : 0, Reduction::min) == 1;
}

std::vector<double> RoundingFloor::norms(const DistributedVector& x, Stream& stream) const {
  constexpr std::uint64_t kAttempts = 4;
  const std::optional<HostVector<double>> sums = magnitudes(x, stream);
  if (!sums) return lower_bounds(x, kAttempts, stream);
  return norms_of(*sums, static_cast<std::size_t>(x.columns()), matrix_.context().communicator());
}

std::optional<HostVector<double>> RoundingFloor::magnitudes(const DistributedVector& x, Stream& stream) const {
  if (!has_rows()) return {};
  Communicator& ranks = matrix_.context().communicator();
  const auto width = static_cast<std::size_t>(x.columns());
  const std::int64_t entries = x.local_rows() * x.columns(), moved_entries = product_.exchange().length() * x.columns();
  ranks.run_agreed([&] {
    require_host_memory(8 * (3 * entries + moved_entries), "rows of magnitudes");
    HostVector<double> magnitudes = to_host(x.view().data, entries, x.type(), stream);
    for (double& value : magnitudes) value = std::abs(value);
    to_device(product_.x().data, magnitudes, x.type(), stream);
  });
  product_.move_x(stream);
  product_.wait(stream);
  HostVector<double> sums;
  ranks.run_agreed([&] {
    const HostVector<double> moved = to_host(product_.exchange().x(), moved_entries, x.type(), stream);
    sums.resize(static_cast<std::size_t>(entries));
    sum_magnitudes(matrix_.host_rows(stream), width, moved, sums);
    if (const HeldRows* const held = product_.held())
      for (const std::int64_t row : held->rows())
        std::fill_n(sums.begin() + row * static_cast<std::int64_t>(width), width, 0.0);
  });
  return sums;
}

std::vector<double> RoundingFloor::lower_bounds(const DistributedVector& x, std::uint64_t attempts, Stream& stream) const {
  DistributedVector signed_x(x.map(), x.type(), x.columns()), y(x.map(), x.type(), x.columns());
  std::vector<double> largest(static_cast<std::size_t>(x.columns()), 0);
  for (std::uint64_t seed = 1; seed <= attempts; ++seed) {
    fill_random(signed_x, seed, Entries::signs, stream, &x);
    product_.multiply(1, signed_x.view(), 0, y.view(), stream);
    product_.wait(stream);
    const std::vector<double> norms = norms_of(y, stream);
    for (std::size_t j = 0; j < norms.size(); ++j) largest[j] = std::max(largest[j], norms[j]);
  }
  return largest;
}

std::vector<double> norms_of_residual(const Product& product, const DistributedVector& b, const DistributedVector& x,
                                      const NullSpaceProjector* project, Stream& stream) {
  DistributedVector r(product.matrix(), VectorLayout::rows, b.type(), b.columns());
  copy_on_device(r.view().data, b.view().data, product.y_bytes(), stream);
  product.multiply(-1, x.view(), 1, r.view(), stream);
  if (project != nullptr) (*project)(r.view(), stream);
  product.wait(stream);
  return norms_of(r, stream);
}

}  // namespace shardmat
