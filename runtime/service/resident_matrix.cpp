#include "runtime/service/resident_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/service/columns.h"

namespace shardmat::service {
namespace {

constexpr std::int64_t kWidest = 32;
/// A wider product is kept only if a column takes this much less time than in all narrower ones.
constexpr double kLeastGain = 1.03;
/// Timed runs of a product, and seconds after which no further one starts.
constexpr int kRuns = 20;
constexpr double kRunSeconds = 0.1;

LoadOptions options_of(const Load& load) {
  if (is_half(load.type))
    throw Error(ErrorKind::usage, fmt::format("type {} is not served; load the matrix as f32 or f64", name(load.type)),
                "type");
  LoadOptions options;
  options.type = load.type;
  options.exchange = load.exchange;
  options.plan.reproducible = true;
  // On the host the model then chooses, always alike; a measured choice could give other bits after a restart. On a GPU the
  // measured choice is remembered (plan_cache.h).
  options.plan.products = 1;
  return options;
}

}  // namespace

ResidentMatrix::ResidentMatrix(const MatrixSource& source, Context& context, const Load& load)
    : context_(context), matrix_(source, context, options_of(load)) {
  for (std::int64_t width = 1; width <= kWidest; width *= 2) {
    add_product(width);
    const double seconds = keeps_bits() ? seconds_of(width) : std::numeric_limits<double>::infinity();
    const double best = widths_.empty() ? std::numeric_limits<double>::infinity()
                                        : widths_.back().seconds / static_cast<double>(widths_.back().width);
    if (width > 1 && seconds / static_cast<double>(width) * kLeastGain > best) {
      products_.erase(width);
      if (width > 2) break;  // two columns may take longer than twice one where four do not
      continue;
    }
    widths_.push_back({width, seconds});
  }
  matrix_.drop_host_rows();
  staging_ = {};
}

void ResidentMatrix::add_product(std::int64_t width) {
  std::unique_ptr<Product> product = matrix_.product(width);
  context_.communicator().together([&] {
    if (product->y_bytes() <= y_.bytes()) return;
    y_ = {};
    require_memory(context_.device(), static_cast<std::int64_t>(product->y_bytes()),
                   "Y of the products of a resident matrix");
    y_ = Buffer(context_.device(), product->y_bytes());
  });
  products_[width] = std::move(product);
}

bool ResidentMatrix::keeps_bits() const {
  const auto& first = products_.begin()->second->row_plans();
  const auto& last = products_.rbegin()->second->row_plans();
  bool same = first.size() == last.size();
  for (std::size_t i = 0; same && i < first.size(); ++i)
    same = first[i].shared_storage() == last[i].shared_storage() && last[i].reproducible();
  return context_.communicator().all_reduce(same ? 1 : 0, Reduction::min) == 1;
}

double ResidentMatrix::seconds_of(std::int64_t width) {
  const auto size_of_vector = static_cast<std::size_t>(std::max(matrix_.rows(), matrix_.cols())) * size_of(matrix_.type());
  const HostVector<std::byte> zeros(size_of_vector, std::byte{0});
  HostVector<std::byte> result(size_of_vector);
  const auto columns = static_cast<std::size_t>(width);
  const std::vector<const std::byte*> x(columns, zeros.data());
  const std::vector<std::byte*> y(columns, result.data());
  const std::vector<double> alphas(columns, 1);
  const Product& product = *products_.at(width);
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  for (int run = 0; run <= kRuns && spent < kRunSeconds; ++run) {  // the first one warms up
    const Timer timer;
    gather(product, x);
    product.multiply(1, 0, product.y_view(y_.data()), context_.stream());
    product.wait(context_.stream());
    scatter(product, alphas, y);
    const double seconds = context_.communicator().all_reduce(timer.seconds(), Reduction::max);
    spent += seconds;
    best = std::min(best, seconds);
  }
  return best;
}

Loaded ResidentMatrix::description() const {
  Loaded loaded;
  loaded.rows = matrix_.rows(), loaded.cols = matrix_.cols(), loaded.nnz = matrix_.nnz();
  loaded.bytes = matrix_.device_bytes() + static_cast<std::int64_t>(y_.bytes());
  for (const auto& [width, product] : products_) loaded.bytes += product->device_bytes();
  for (const RowPlan& plan : products_.at(1)->row_plans())
    if (const std::string kernel = plan.kernel_and_tunables(); loaded.kernel != kernel)
      loaded.kernel += (loaded.kernel.empty() ? "" : "; ") + kernel;
  loaded.exchange = products_.at(1)->exchange().name();
  loaded.widths = widths_;
  return loaded;
}

Multiplied ResidentMatrix::multiply(const Multiply& command, const Arena& arena) {
  const auto found = products_.find(command.width);
  if (found == products_.end() || std::ssize(command.columns) > command.width)
    throw AgreedError(ErrorKind::internal, fmt::format("the matrix has no product of {} columns", command.width));
  const Product& product = *found->second;
  const std::size_t entry = size_of(matrix_.type());
  std::vector<const std::byte*> x;
  std::vector<std::byte*> y;
  std::vector<double> alphas;
  for (const Column& column : command.columns) {
    x.push_back(arena.at(column.x, static_cast<std::uint64_t>(matrix_.cols()) * entry).data());
    y.push_back(arena.at(column.y, static_cast<std::uint64_t>(matrix_.rows()) * entry).data());
    alphas.push_back(column.alpha);
  }
  Multiplied times;
  const Timer timer;
  gather(product, x);
  times.copy_in = timer.seconds();
  product.multiply(1, 0, product.y_view(y_.data()), context_.stream());
  product.wait(context_.stream());
  times.product = timer.seconds() - times.copy_in;
  scatter(product, alphas, y);
  times.copy_out = timer.seconds() - times.copy_in - times.product;
  return times;
}

void ResidentMatrix::gather(const Product& product, std::span<const std::byte* const> vectors) {
  const Dense x = product.x();
  const DenseStrides strides = shardmat::strides(x.order, x.leading);
  const bool on_host = context_.device().backend == Backend::host;
  const auto outer = static_cast<std::size_t>(x.order == DenseOrder::row_major ? x.rows : x.columns);
  const std::size_t bytes = outer * static_cast<std::size_t>(x.leading) * size_of(x.type);
  if (!on_host) staging_.reserve(bytes, context_.device(), true);
  gather_columns(vectors, matrix_.x_ids(), x.type, x.columns, strides, on_host ? x.data : staging_.data());
  if (!on_host) copy_to_device(x.data, staging_.data(), bytes, context_.stream());
}

void ResidentMatrix::scatter(const Product& product, std::span<const double> alphas, std::span<std::byte* const> vectors) {
  const bool on_host = context_.device().backend == Backend::host;
  if (!on_host) {
    staging_.reserve(product.y_bytes(), context_.device(), true);
    copy_to_host(staging_.data(), y_.data(), product.y_bytes(), context_.stream());
  }
  scatter_columns(on_host ? y_.data() : staging_.data(), product.columns(), matrix_.row_ids(), matrix_.type(), alphas,
                  vectors);
}

}  // namespace shardmat::service
