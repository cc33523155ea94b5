#include "runtime/matrix/distributed_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/timer.h"
#include "kernels/choose/registry.h"
#include "kernels/spmm_plan.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/load_part.h"
#include "runtime/matrix/make_symmetric.h"
#include "runtime/matrix/matrix_rows.h"
#include "runtime/matrix/matrix_values.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/product_planner.h"
#include "runtime/matrix/put_on_maps.h"
#include "runtime/matrix/vectors.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {
namespace {

PartOptions part_options(const LoadOptions& options) {
  return {options.type,   options.method, options.sort, options.progress, options.node_block_size,
          options.y_rows, options.x_rows};
}

void store_one_triangle(LoadedPart& part, const MatrixOptions& options, Context& context) {
  context.communicator().run_agreed([&] {
    require_storage(context.device().backend, StoredEntries::half);
    if (options.values == Values::updatable)
      throw Error(ErrorKind::usage, "a matrix in symmetric storage takes no new values; store all entries", "storage");
  });
  make_symmetric(part, options.type, context.communicator());
}

ColumnSums sum_columns(const LoadedPart& part) {
  require_host_memory(16 * part.cols, "column sums for the sampled verification");
  ColumnSums sums;
  sums.sum.assign(static_cast<std::size_t>(part.cols), 0.0);
  sums.weight.assign(static_cast<std::size_t>(part.cols), 0.0);
  const CsrView csr = part.csr.view();
  for (std::size_t i = 0; i < static_cast<std::size_t>(csr.rows); ++i) {
    const auto begin = static_cast<std::size_t>(csr.row_ptr[i]), end = static_cast<std::size_t>(csr.row_ptr[i + 1]);
    for (std::size_t k = begin; k < end; ++k) {
      const double value = csr.values[k];  // those of f32 are rounded
      const auto column = static_cast<std::size_t>(csr.col_idx[k]);
      sums.sum[column] += value;
      sums.weight[column] += static_cast<double>(end - begin + 2) * std::abs(value);
    }
  }
  return sums;
}

}  // namespace

DistributedMatrix::DistributedMatrix(const MatrixSource& source, Context& context, const LoadOptions& options)
    : DistributedMatrix(load_part(source, context, part_options(options)), context, options) {}

DistributedMatrix::DistributedMatrix(MatrixPart part, Context& context, const MatrixOptions& options)
    : context_(context), options_(options), part_(std::move(part)), column_sums_(std::make_unique<ColumnSums>()) {
  const ContextScope scope(context);
  Communicator& communicator = context.communicator();
  Timer timer;
  communicator.run_agreed([&] {
    require_kernel(options_.plan.kernel, context.device().backend);
    require_column_block(options_.right_hand_sides, options_.column_block);
  });
  require_maps(part_->rows, part_->cols, options_.y_rows.get(), options_.x_rows.get(), context);
  if (options_.y_rows || options_.x_rows) put_on_maps(*part_, options_.y_rows.get(), options_.x_rows.get(), communicator);
  if (options_.plan.storage == StoredEntries::half) store_one_triangle(*part_, options_, context);
  communicator.run_agreed([&] {
    if (part_->nnz / communicator.size() > options_.column_sums_above) *column_sums_ = sum_columns(*part_);
  });
  part_->times.read += timer.seconds();
  timer = Timer();
  const Boundary boundary = find_boundary(*part_, options_, context);
  const bool square = part_->square();
  y_rows_ = options_.y_rows || !square ? options_.y_rows : options_.x_rows;
  if (!y_rows_) y_rows_ = RowMap::make(std::move(part_->y), context);
  x_rows_ = square ? y_rows_ : options_.x_rows;
  if (!x_rows_) x_rows_ = RowMap::make(std::move(part_->x), context);
  rows_ = std::make_unique<MatrixRows>(std::move(part_->csr), std::move(part_->value_starts), options_, context);
  planner_ = std::make_unique<ProductPlanner>(*rows_, boundary, *x_rows_, options_, context);
  map_ = planner_->column_map();
  const std::int64_t most =
      map_->layout() == ColumnLayout::compact ? map_->own() + map_->received() : part_->cols;  // without padding
  x_entries_ = communicator.run_agreed([&] { return occupied_columns(rows_->view(), most); });
  values_ =
      std::make_unique<MatrixValues>(*rows_, *y_rows_, *x_rows_, *map_, std::move(part_->route), part_->first_row, options_);
  part_->times.exchange = timer.seconds();
}

DistributedMatrix::~DistributedMatrix() = default;

HostVector<double> DistributedMatrix::column_values(const HostVector<double>& own) const {
  const ContextScope scope(context_);
  Communicator& communicator = context_.communicator();
  Stream& stream = context_.stream();
  const auto exchange = make_exchange("auto", context_.exchange_context(ValueType::f64, 1), map_);
  communicator.run_agreed([&] { to_device(exchange->local_x(), own, ValueType::f64, stream); });
  exchange->start(stream);
  exchange->finish(stream);
  exchange->wait(stream);
  return communicator.run_agreed([&] { return to_host(exchange->x(), map_->length(), ValueType::f64, stream); });
}

HostVector<std::int64_t> DistributedMatrix::column_ids() const {
  Communicator& communicator = context_.communicator();
  const HostVector<double> from_1 = communicator.run_agreed([&] {
    const HostVector<std::int64_t>& ids = x_rows_->ids();
    HostVector<double> numbers(ids.size());  // padding is 0
    std::transform(ids.begin(), ids.end(), numbers.begin(), [](std::int64_t id) { return static_cast<double>(id + 1); });
    return numbers;
  });
  const HostVector<double> moved = column_values(from_1);
  return communicator.run_agreed([&] {
    HostVector<std::int64_t> ids(moved.size());
    std::transform(moved.begin(), moved.end(), ids.begin(), [](double id) { return static_cast<std::int64_t>(id) - 1; });
    return ids;
  });
}

std::unique_ptr<Product> DistributedMatrix::product(std::int64_t columns) {
  ProductOptions options;
  options.columns = columns;
  if (!rows_->stored() && columns == options_.right_hand_sides) options.column_block = options_.column_block;
  return product(options);
}

std::unique_ptr<Product> DistributedMatrix::product(const ProductOptions& options) {
  const ContextScope scope(context_);
  const Timer timer;
  std::unique_ptr<Product> product = planner_->product(*this, options);
  if (options_.host_rows == HostRows::drop) drop_host_rows();
  part_->times.plan += timer.seconds();
  return product;
}

std::unique_ptr<TransposedProduct> DistributedMatrix::transposed_product(std::int64_t columns) {
  const ContextScope scope(context_);
  const Timer timer;
  const auto columns_of_ranks = context_.communicator().all_gather(columns);
  context_.communicator().run_agreed([&] {
    require_same_columns(columns_of_ranks);
    require_count(columns);
    if (is_half(options_.type))
      throw Error(ErrorKind::usage,
                  fmt::format("a matrix in {} has no transposed product; store it in f64 or f32", name(options_.type)));
  });
  const bool symmetric = options_.plan.storage == StoredEntries::half;
  std::unique_ptr<Product> product;
  if (symmetric || !rows_->stored()) {
    ProductOptions options;
    options.columns = symmetric ? columns : options_.right_hand_sides;
    if (!rows_->stored()) options.column_block = options_.column_block;
    product = planner_->product(*this, options);
  }
  auto made = symmetric ? std::make_unique<TransposedProduct>(*this, std::move(product))
                        : plan_transposed_product(*this, *rows_, map_, columns);
  if (options_.host_rows == HostRows::drop) drop_host_rows();
  part_->times.plan += timer.seconds();
  return made;
}

bool DistributedMatrix::can_transpose() const {
  return options_.plan.storage == StoredEntries::half || rows_->can_transpose();  // half: it is its own transpose
}

void DistributedMatrix::update_values(const ConstDense& values, Stream& stream) {
  const ContextScope scope(context_);
  values_->update(values, stream);
}

std::uint64_t DistributedMatrix::values_version() const { return values_->version(); }

void DistributedMatrix::zero_rows_columns(std::span<const std::int64_t> rows, double diagonal, const DistributedVector* x,
                                          DistributedVector* b, Stream& stream) {
  const ContextScope scope(context_);
  values_->zero_rows_columns(
      rows, diagonal, x, b, [this] { return product(1); }, stream);
}

DistributedVector DistributedMatrix::diagonal(Stream& stream) {
  const ContextScope scope(context_);
  return values_->diagonal(y_rows_, stream);
}

DiagonalBlocks DistributedMatrix::block_diagonal(std::int64_t size, Stream& stream) {
  const ContextScope scope(context_);
  return values_->block_diagonal(size, stream);
}

std::int64_t DistributedMatrix::rows() const { return part_->rows; }
std::int64_t DistributedMatrix::cols() const { return part_->cols; }
std::int64_t DistributedMatrix::nnz() const { return part_->nnz; }
const std::string& DistributedMatrix::partition_origin() const { return part_->partition_origin; }
LocalSort DistributedMatrix::local_sort() const { return part_->sort; }
double DistributedMatrix::symmetry_difference() const { return part_->symmetry_difference; }
std::span<const double> DistributedMatrix::averaged() const { return part_->averaged; }
const LoadTimes& DistributedMatrix::load_times() const { return part_->times; }
std::int64_t DistributedMatrix::node_block_size() const { return part_->node_block_size; }
const std::string& DistributedMatrix::node_block_origin() const { return part_->node_block_origin; }
const NodeFacts* DistributedMatrix::nodes() const { return part_->nodes.get(); }
void DistributedMatrix::know_nodes(std::shared_ptr<const NodeFacts> nodes) { part_->nodes = std::move(nodes); }
bool DistributedMatrix::nodes_are_whole() const { return part_->nodes_are_whole; }

std::int64_t DistributedMatrix::local_nnz() const { return rows_->nnz(); }
std::int64_t DistributedMatrix::device_bytes() const { return rows_->device_bytes(); }
std::int64_t DistributedMatrix::map_bytes() const { return rows_->map_bytes(); }
std::int64_t DistributedMatrix::transpose_bytes() const { return rows_->transpose_bytes(); }
std::int64_t DistributedMatrix::host_bytes() const { return rows_->host_bytes(); }
bool DistributedMatrix::has_host_rows() const { return rows_->on_host(); }
CsrView DistributedMatrix::host_rows(Stream& stream) { return rows_->on_host_now(stream); }
CsrView DistributedMatrix::host_pattern() const {
  rows_->require_on_host();
  return rows_->view();
}
bool DistributedMatrix::can_write_values() const { return rows_->can_write_values(); }
void DistributedMatrix::write_values(double* to, Stream& stream) const { rows_->write_values(to, stream); }
bool DistributedMatrix::write_columns(std::int32_t* to, Stream& stream) const { return rows_->write_columns(to, stream); }
void DistributedMatrix::drop_host_rows() { rows_->drop_from_host(); }

}  // namespace shardmat
