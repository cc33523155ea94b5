#include "runtime/service/engine/resident_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <random>
#include <utility>

#include "comm/exchange/exchange.h"
#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/run/node_coordinates.h"
#include "runtime/service/engine/column_places.h"
#include "runtime/service/engine/density.h"
#include "runtime/source/matrix_source.h"

namespace shardmat::service {
namespace {

/// A wider product is kept only if a column takes this much less time than in all narrower ones.
constexpr double kLeastGain = 1.03;
/// Timed runs of a product, and seconds after which no further one starts.
constexpr int kRuns = 20;
constexpr double kRunSeconds = 0.1;
constexpr std::size_t kPageBytes = 4096, kCacheLineBytes = 64;

double seconds_of_column(const WidthTime& time) { return time.seconds / static_cast<double>(time.width); }

LoadOptions options_of(const Load& load, const std::string& choices, int ranks) {
  if (is_half(load.type))
    throw Error(ErrorKind::usage, fmt::format("type {} is not served; load the matrix as f32 or f64", name(load.type)),
                "type");
  LoadOptions options;
  options.type = load.type;
  // It may have been chosen for another number of ranks, before the service was started again.
  options.exchange = (load.exchange == "none") == (ranks == 1) ? load.exchange : "auto";
  options.plan.kernel = load.kernel;
  options.sort = parse_local_sort(load.sort);
  options.plan.reproducible = true;
  options.plan.same_bits = true;
  // On the host the model then chooses, always alike; a measured choice could give other bits after a restart. On a GPU the
  // measured choice is remembered.
  options.plan.products = 1;
  options.cache_directory = choices;
  if (load.updatable) options.values = Values::updatable;
  return options;
}

}  // namespace

ResidentMatrix::ResidentMatrix(const MatrixSource& source, Context& context, const Load& load, const std::string& choices,
                               const NodeFiles& nodes)
    : context_(context),
      matrix_(source, context,
              context.communicator().run_agreed([&] { return options_of(load, choices, context.communicator().size()); })),
      x_rows_(matrix_.x_rows()),
      y_rows_(matrix_.y_rows()),
      transfer_(context.stream()),
      transpose_(matrix_, transfer_),
      new_values_(matrix_.local_nnz(), matrix_.type(), context.communicator()) {
  for (std::int64_t width = 1; width <= kMostColumns; width *= 2) {
    add_product(width);
    const Product& product = *products_.at(width);
    if (!shares_storage(product) || !agree(bits_of(product).has_value())) {
      products_.erase(width);
      continue;
    }
    const double seconds = seconds_of(width);
    const bool faster =
        widths_.empty() || seconds / static_cast<double>(width) * kLeastGain < seconds_of_column(widths_.back());
    widths_.push_back({width, seconds});
    if (!faster && width > 2) break;  // two columns may take longer than twice one where four do not
  }
  keep_equal_bits();
  density_ = count_density(matrix_);
  if (load.solvable) {  // preconditioners are made of the rows
    context.communicator().run_agreed([&] {
      if (matrix_.rows() != matrix_.cols())
        throw Error(ErrorKind::usage,
                    fmt::format("a solver needs a square matrix; {} is {} × {}: load it without solvable", load.source,
                                matrix_.rows(), matrix_.cols()),
                    "solvable");
    });
    if (!nodes.empty()) matrix_.know_nodes(open_nodes(matrix_, *source.rows, nodes));
    solvers_ = std::make_unique<ResidentSolvers>(matrix_);
    return;
  }
  context.communicator().run_agreed([&] {
    if (!nodes.empty())
      throw Error(ErrorKind::usage, "coordinates are for solvers; load the matrix as solvable, too", "coordinates");
  });
  matrix_.drop_host_rows();
  is_transposable_ = agree(matrix_.can_transpose());
  matrix_.know_nodes(nullptr);  // nothing is solved here, and the file can be closed
}

ResidentSolvers& ResidentMatrix::solvers() {
  if (!solvers_)
    throw AgreedError(ErrorKind::usage,
                      "the matrix was loaded without what solvers need of it; load it again with solvable set to true");
  return *solvers_;
}

/// Drops the products that sum rows in another order than the fastest one, and those that take no less time for a column
/// than a narrower one. Then all that are left give a column the same bits.
void ResidentMatrix::keep_equal_bits() {
  require_product();
  const auto fastest = std::min_element(widths_.begin(), widths_.end(), [](const WidthTime& a, const WidthTime& b) {
    return seconds_of_column(a) < seconds_of_column(b);
  });
  reference_ = fastest->width;
  std::vector<WidthTime> kept;
  const auto expected = bits_of(*products_.at(reference_));
  const auto keeps_bits = [&](const WidthTime& one) {
    return one.width == reference_ || agree(bits_of(*products_.at(one.width)) == expected);
  };
  for (const WidthTime& one : widths_) {
    const bool pays = kept.empty() || seconds_of_column(one) * kLeastGain < seconds_of_column(kept.back());
    if (pays && keeps_bits(one)) kept.push_back(one);
    else if (one.width != reference_) products_.erase(one.width);
  }
  widths_ = std::move(kept);
  if (widths_.back().width != reference_) products_.erase(std::exchange(reference_, widths_.back().width));
}

void ResidentMatrix::require_product() const {
  if (widths_.empty())
    throw AgreedError(ErrorKind::usage,
                      "no kernel of this matrix gives a column the same bits in every place of a product; load it as "
                      "another type",
                      "type");
}

void ResidentMatrix::add_product(std::int64_t width) {
  std::unique_ptr<Product> product = matrix_.product(width);
  Buffer wider;
  context_.communicator().run_agreed([&] {
    transfer_.reserve(product->x(), *x_rows_);
    transfer_.reserve(product->y_view(nullptr), *y_rows_);
    if (product->y_bytes() <= y_.bytes()) return;
    require_memory(context_.device(), static_cast<std::int64_t>(product->y_bytes()),
                   "Y of the products of a resident matrix");
    wider = Buffer(context_.device(), product->y_bytes());
  });
  if (wider.bytes() > 0) y_ = std::move(wider);
  products_[width] = std::move(product);
}

bool ResidentMatrix::shares_storage(const Product& product) const {
  const auto& first = products_.begin()->second->row_plans();
  const auto& other = product.row_plans();
  bool usable = first.size() == other.size();
  for (std::size_t i = 0; usable && i < first.size(); ++i)
    usable = first[i].shared_storage() == other[i].shared_storage() && other[i].reproducible();
  return agree(usable);
}

bool ResidentMatrix::agree(bool here) const { return context_.communicator().all_reduce(here ? 1 : 0, Reduction::min) == 1; }

/// This rank's rows of A·v, v of pseudo-random numbers; nothing if the first and the last column of the product differ.
/// Kernels that sum a row in another order give other bits in some row.
std::optional<HostVector<std::byte>> ResidentMatrix::bits_of(const Product& product) {
  const std::size_t entry = size_of(matrix_.type());
  HostVector<std::byte> v(static_cast<std::size_t>(matrix_.cols()) * entry);
  dispatch(matrix_.type(), [&]<class T>(TypeTag<T>) {
    T* values = reinterpret_cast<T*>(v.data());
    std::minstd_rand numbers(1);
    for (std::int64_t i = 0; i < matrix_.cols(); ++i)
      values[i] = static_cast<T>(static_cast<double>(numbers()) * 0x1p-31 - 0.5);
  });
  const auto columns = static_cast<std::size_t>(product.columns());
  HostVector<std::byte> first(static_cast<std::size_t>(matrix_.rows()) * entry), last;
  std::fill(first.begin(), first.end(), std::byte{0});
  if (columns > 1) last = first;
  std::vector<UnpackedColumn> y(columns, UnpackedColumn{nullptr, 1, 0});
  y.front().y = first.data();
  if (columns > 1) y.back().y = last.data();
  transfer_.take(std::vector<const std::byte*>(columns, v.data()), *x_rows_, product.x());
  product.multiply(1, 0, product.y_view(y_.data()), context_.stream());
  product.wait(context_.stream());
  transfer_.give(product.y_view(y_.data()), *y_rows_, y);
  if (columns > 1 && first != last) return std::nullopt;
  return first;
}

bool ResidentMatrix::add_block_product(std::int64_t width) {
  if (products_.count(width) != 0) return false;
  add_product(width);
  const Product& product = *products_.at(width);
  if (shares_storage(product)) {
    const auto bits = bits_of(product);
    if (agree(bits.has_value()) && agree(bits == bits_of(*products_.at(reference_)))) return true;
  }
  products_.erase(width);
  throw AgreedError(ErrorKind::usage,
                    fmt::format("the kernel of this matrix has no product of {} columns with the bits of single products; "
                                "make vectors of one column",
                                width));
}

double ResidentMatrix::least_seconds(const std::function<void()>& run) const {
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  for (int number = 0; number <= kRuns && spent < kRunSeconds; ++number) {  // the first one warms up
    const Timer timer;
    run();
    const double seconds = context_.communicator().all_reduce(timer.seconds(), Reduction::max);
    spent += seconds;
    best = std::min(best, seconds);
  }
  return best;
}

/// On the host with the columns of requests, which are interleaved there. On a GPU a column takes the same time to copy in
/// every product, and vectors that stay are not copied: there the product alone counts.
double ResidentMatrix::seconds_of(std::int64_t width) {
  const Product& product = *products_.at(width);
  Stream& stream = context_.stream();
  if (context_.device().backend != Backend::host)
    return least_seconds([&] {
      product.multiply(1, 0, product.y_view(y_.data()), stream);
      product.wait(stream);
    });
  const auto size_of_vector = static_cast<std::size_t>(std::max(matrix_.rows(), matrix_.cols())) * size_of(matrix_.type());
  const auto columns = static_cast<std::size_t>(width);
  // Columns of requests lie apart. Vectors of one place would leave all columns but the first in the cache.
  const std::size_t apart = columns == 1 ? 0 : size_of_vector / columns / kPageBytes * kPageBytes + kCacheLineBytes;
  const HostVector<std::byte> zeros(size_of_vector + apart * (columns - 1), std::byte{0});
  HostVector<std::byte> result(zeros.size(), std::byte{0});
  std::vector<const std::byte*> x;
  std::vector<UnpackedColumn> y;
  for (std::size_t j = 0; j < columns; ++j) {
    x.push_back(zeros.data() + j * apart);
    y.push_back({result.data() + j * apart, 1, 0});
  }
  return least_seconds([&] {
    transfer_.take(x, *x_rows_, product.x());
    const auto rows = rows_in(product, result.data());
    product.multiply(1, 0, rows ? *rows : product.y_view(y_.data()), stream);
    product.wait(stream);
    if (!rows) transfer_.give(product.y_view(y_.data()), *y_rows_, y);
  });
}

std::int64_t ResidentMatrix::device_bytes() const {
  std::int64_t bytes = matrix_.device_bytes() + static_cast<std::int64_t>(y_.bytes()) + transpose_.device_bytes();
  for (const auto& [width, product] : products_) bytes += product->device_bytes();
  return bytes;
}

Loaded ResidentMatrix::description() const {
  Loaded loaded;
  loaded.rows = matrix_.rows(), loaded.cols = matrix_.cols(), loaded.nnz = matrix_.nnz();
  loaded.bytes = device_bytes();
  for (const RowPlan& plan : products_.begin()->second->row_plans())
    if (const std::string kernel = plan.kernel_and_tunables(); loaded.kernel != kernel) {
      loaded.kernel += (loaded.kernel.empty() ? "" : "; ") + kernel;
      if (loaded.why != plan.why()) loaded.why += (loaded.why.empty() ? "" : "; ") + plan.why();
    }
  loaded.exchange = products_.begin()->second->exchange().name();
  loaded.widths = widths_;
  for (WidthTime& one : loaded.widths) one.bytes = products_.at(one.width)->compulsory_bytes(0);
  loaded.update_bytes = matrix_.map_bytes();
  loaded.solve_bytes = solvers_ ? matrix_.host_bytes() : 0;
  loaded.transposable = is_transposable_;
  loaded.x_distribution = x_rows_->number(), loaded.y_distribution = y_rows_->number();
  return loaded;
}

Multiplied ResidentMatrix::multiply(const Multiply& command, Memories& memories, const ResidentVectors& vectors) {
  if (command.transpose) return multiply_transposed(command, memories, vectors);
  const bool blocks = command.x_block != 0 || command.y_block != 0;
  const bool made = blocks && add_block_product(command.width);
  const auto found = products_.find(command.width);
  if (found == products_.end() || (blocks && std::ssize(command.columns) != command.width))
    throw AgreedError(ErrorKind::internal, fmt::format("the matrix has no product of {} columns", command.width));
  Multiplied times;
  const std::span<const Column> columns = command.columns;
  const auto width = static_cast<std::size_t>(command.width);
  for (std::size_t first = 0; first < columns.size(); first += width) {
    const auto some = columns.subspan(first, std::min(width, columns.size() - first));
    const Multiplied more = multiply(*found->second, command, some, memories, vectors);
    times.copy_in += more.copy_in, times.product += more.product, times.copy_out += more.copy_out;
  }
  if (made) times.matrix_bytes = device_bytes();
  return times;
}

Multiplied ResidentMatrix::multiply_transposed(const Multiply& command, Memories& memories, const ResidentVectors& vectors) {
  const std::int64_t before = transpose_.device_bytes();
  Multiplied times = transpose_.multiply(command, memories, vectors);
  if (transpose_.device_bytes() != before) times.matrix_bytes = device_bytes();
  return times;
}

Multiplied ResidentMatrix::multiply(const Product& product, const Multiply& command, std::span<const Column> columns,
                                    Memories& memories, const ResidentVectors& vectors) {
  Stream& stream = context_.stream();
  Multiplied times;
  const Timer timer;
  const Column& column = columns.front();
  std::vector<Place> x_places, read_y_places, y_places;  // outside this rank's memory
  for (const Column& one : columns) {
    if (command.x_block == 0 && one.x.vector == 0) x_places.push_back(one.x);
    if (command.y_block != 0 || one.y.vector != 0) continue;
    y_places.push_back(one.y);
    if (one.beta != 0) read_y_places.push_back(one.y);
  }
  memories.fetch(x_places, *x_rows_, matrix_.type());
  memories.fetch(read_y_places, *y_rows_, matrix_.type());
  std::optional<Dense> rows;  // before copies of x are under way, as Memories::at() asks for
  if (command.y_block == 0 && column.y.vector == 0)
    rows =
        rows_in(product, memories.at(column.y, static_cast<std::uint64_t>(matrix_.rows()) * size_of(matrix_.type())).data());
  ConstDense x = product.x();
  if (command.x_block != 0) x = vectors.view(command.x_block, *x_rows_, matrix_.type(), command.width);
  else if (const auto in_place = x_in(product, column, memories, vectors)) x = *in_place;
  else ColumnPlaces{transfer_, memories, vectors, stream}.take(columns, &Column::x, *x_rows_, product.x());
  times.copy_in = timer.seconds();
  if (rows) {
    product.multiply(column.alpha, x, column.beta, *rows, stream);
  } else if (command.y_block != 0) {
    product.multiply(column.alpha, x, column.beta, vectors.view(command.y_block, *y_rows_, matrix_.type(), command.width),
                     stream);
  } else {
    // A product with alpha = 0 moves no x, and another rank may have taken the way of `rows`: all must do the same.
    const bool reads_x = std::any_of(columns.begin(), columns.end(), [](const Column& one) { return one.alpha != 0; });
    product.multiply(reads_x ? 1 : 0, x, 0, product.y_view(y_.data()), stream);
  }
  product.wait(stream);
  times.product = timer.seconds() - times.copy_in;
  if (command.y_block == 0 && !rows)
    ColumnPlaces{transfer_, memories, vectors, stream}.give(product.y_view(y_.data()), *y_rows_, columns);
  memories.deliver(y_places, *y_rows_, matrix_.type());
  times.copy_out = timer.seconds() - times.copy_in - times.product;
  return times;
}

std::optional<ConstDense> ResidentMatrix::x_in(const Product& product, const Column& column, Memories& memories,
                                               const ResidentVectors& vectors) const {
  if (product.columns() != 1) return std::nullopt;
  if (column.x.vector != 0) return vectors.view(column.x.vector, *x_rows_, matrix_.type(), 1);
  const bool on_host = context_.device().backend == Backend::host;
  if (!on_host || !x_rows_->is_range() || !product.exchange().x_may_lie_elsewhere()) return std::nullopt;
  const std::size_t entry = size_of(matrix_.type());
  ConstDense x = product.x();
  x.data = memories.at(column.x, static_cast<std::uint64_t>(matrix_.cols()) * entry).data() +
           static_cast<std::size_t>(matrix_.x_rows()->ids().front()) * entry;
  return x;
}

std::optional<Dense> ResidentMatrix::rows_in(const Product& product, void* y) const {
  if (context_.device().backend != Backend::host || product.columns() != 1 || !y_rows_->is_range()) return std::nullopt;
  const std::int64_t first = matrix_.y_rows()->ids().front() * static_cast<std::int64_t>(size_of(matrix_.type()));
  return product.y_view(static_cast<std::byte*>(y) + first);
}

void ResidentMatrix::put_values(const PutValues& command, Memories& memories) {
  if (matrix_.options().values != Values::updatable)
    throw AgreedError(ErrorKind::usage,
                      "the matrix was loaded without room for new values; load it again as an updatable one");
  const auto first = static_cast<std::int64_t>(command.first);
  memories.fetch_ranges(command.offset, new_values_.parts_of(first, static_cast<std::int64_t>(command.count)));
  new_values_.take(first, memories.at({0, command.offset, 0}, command.count * size_of(matrix_.type())),
                   context_.communicator());
  if (!new_values_.complete()) return;
  std::exception_ptr error;
  try {
    matrix_.update_values(new_values_.own(), context_.stream());
    context_.stream().synchronize();
  } catch (const AgreedError&) {  // before any value was changed
    new_values_.clear();
    throw;
  } catch (...) {
    error = std::current_exception();
  }
  new_values_.clear();
  try {
    context_.communicator().agree(error);
  } catch (const AgreedError& why) {
    throw AgreedError(ErrorKind::internal, fmt::format("the new values could not be stored: {}", why.what()));
  }
}

}  // namespace shardmat::service
