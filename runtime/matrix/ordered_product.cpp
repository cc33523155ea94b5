#include "runtime/matrix/ordered_product.h"

#include <utility>

#include "kernels/vector.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/row_plan.h"

namespace shardmat {
namespace {

/// Memory that grows on demand.
void* room(Buffer& buffer, Device device, std::size_t bytes) {
  if (buffer.bytes() < bytes) buffer = Buffer(), buffer = Buffer(device, bytes);
  return buffer.data();
}

bool keeps_order(const DistributedMatrix& matrix) {
  return matrix.y_rows()->route() == nullptr && matrix.y_rows()->in_source_order();
}

/// Entry (i, j) of `columns` columns is entry (order[i], j) of where it comes from.
HostVector<std::int64_t> entries_of(const HostVector<std::int64_t>& order, std::int64_t columns) {
  HostVector<std::int64_t> entries;
  entries.reserve(order.size() * static_cast<std::size_t>(columns));
  for (const std::int64_t row : order)
    for (std::int64_t j = 0; j < columns; ++j) entries.push_back(row * columns + j);
  return entries;
}

bool by_rows_without_gaps(const ConstDense& view) {
  return view.columns == 1 || (view.order == DenseOrder::row_major && view.leading == view.columns);
}

/// Bytes from the first entry to the last.
std::size_t extent(const ConstDense& view) {
  if (view.rows == 0 || view.columns == 0) return 0;
  if (view.columns == 1) return static_cast<std::size_t>(view.rows) * size_of(view.type);
  const bool by_rows = view.order == DenseOrder::row_major;
  const std::int64_t steps = (by_rows ? view.rows : view.columns) - 1, rest = by_rows ? view.columns : view.rows;
  return static_cast<std::size_t>(steps * view.leading + rest) * size_of(view.type);
}

}  // namespace

/// A matrix of the caller as the product takes it: on the device, row by row without gaps, in copies where it is not.
class OrderedProduct::Operand {
 public:
  /// `read`: its entries are needed.
  Operand(const Dense& given, Device device, Copies& copies, bool read, Stream& stream)
      : given_(given), here_(given), stream_(stream) {
    const bool fits = by_rows_without_gaps(given);
    if (!(given.device == device)) {
      here_.data = room(copies.here, device, extent(given));
      here_.device = device;
      if (read || !fits) copy_to_device(here_.data, given.data, extent(given), stream);  // gaps stay as they are
    }
    packed_ = here_;
    if (fits) return;
    packed_.order = DenseOrder::row_major;
    packed_.leading = given.columns;
    packed_.data = room(copies.packed, device, static_cast<std::size_t>(given.rows * given.columns) * size_of(given.type));
    if (read) copy_matrix(here_, packed_, stream);
  }
  void* data() const { return packed_.data; }
  /// Brings the entries to where the caller wants them.
  void give_back() const {
    if (packed_.data != here_.data) copy_matrix(packed_, here_, stream_);
    if (here_.data != given_.data) copy_to_host(given_.data, here_.data, extent(given_), stream_);
  }

 private:
  Dense given_, here_, packed_;
  Stream& stream_;
};

OrderedProduct::OrderedProduct(DistributedMatrix& matrix, const ProductOptions& options)
    : matrix_(matrix), product_(matrix.product(options)) {
  for (const RowPlan& plan : product_->row_plans()) {
    if (!kernel_.empty()) kernel_ += ", ", why_ += "; ";
    kernel_ += plan.kernel_and_tunables();
    why_ += plan.why();
  }
  const ContextScope scope(matrix.context());
  Communicator& communicator = matrix.context().communicator();
  in_order_ = communicator.all_reduce(keeps_order(matrix) ? 1 : 0, Reduction::min) == 1;
  if (in_order_) return;
  if (matrix.y_rows()->route() != nullptr || is_half(matrix.type())) {
    x_.emplace(matrix, VectorLayout::columns, matrix.type(), options.columns);
    y_.emplace(matrix, VectorLayout::rows, sum_type(matrix.type()), options.columns);
    return;
  }
  Stream& stream = matrix.context().stream();
  communicator.run_agreed([&] {
    to_places_.emplace(entries_of(matrix.y_rows()->places_of_rows(), options.columns), stream);
    from_places_.emplace(entries_of(matrix.y_rows()->rows_by_place(), options.columns), stream);
    room(ordered_y_, matrix.context().device(), product_->y_bytes());
  });
}

/// By way of vectors of the matrix, in host memory: rows that are on other ranks, and half precision.
void OrderedProduct::multiply_by_vectors(double alpha, const ConstDense& x, double beta, const Dense& y, Stream& stream) {
  x_->set_own(x, stream);
  if (beta != 0) y_->set_own(y, stream);
  product_->multiply(alpha, x_->view(), beta, y_->view(), stream);
  product_->wait(stream);
  y_->own(y, stream);
}

void OrderedProduct::multiply(double alpha, const ConstDense& x, double beta, const Dense& y, Stream& stream, bool wait) {
  const Device device = matrix_.context().device();
  const ContextScope scope(matrix_.context());
  if (x_) return multiply_by_vectors(alpha, x, beta, y, stream);

  const bool square = matrix_.rows() == matrix_.cols(), here = x.device == device && y.device == device;
  if (in_order_ && here) {
    product_->multiply(alpha, x, beta, y, stream);
    if (wait) product_->wait(stream);
    return;
  }
  const std::int64_t columns = product_->columns();
  require_dense("X", x, std::ssize(matrix_.x_rows()->ids()), columns, matrix_.type(), x.device);
  require_dense("Y", y, matrix_.local_rows(), columns, sum_type(matrix_.type()), y.device);
  const Dense read_only{const_cast<void*>(x.data), x.rows, x.columns, x.leading, x.order, x.type, x.device};
  const Operand from(read_only, device, copies_of_x_, true, stream), to(y, device, copies_of_y_, beta != 0, stream);
  const Dense slot = product_->x();
  if (to_places_ && square) {
    to_places_->pick(from.data(), x.type, slot.data, slot.type, stream);
  } else if (from.data() != slot.data) {
    copy_on_device(slot.data, from.data(), static_cast<std::size_t>(slot.rows * columns) * size_of(slot.type), stream);
  }
  void* const ordered = to_places_ ? ordered_y_.data() : to.data();
  if (to_places_ && beta != 0) to_places_->pick(to.data(), y.type, ordered, y.type, stream);
  product_->multiply(alpha, beta, product_->y_view(ordered), stream);
  if (from_places_) from_places_->pick(ordered, y.type, to.data(), y.type, stream);
  if (wait || !(y.device == device)) product_->wait(stream);
  to.give_back();
  if (wait) stream.synchronize();
}

}  // namespace shardmat
