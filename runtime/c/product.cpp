#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/vector.h"
#include "runtime/c/handles.h"
#include "runtime/matrix/row_plan.h"

namespace shardmat::c {
namespace {

/// Memory that grows on demand.
void* room(Buffer& buffer, Device device, std::size_t bytes) {
  if (buffer.bytes() < bytes) buffer = Buffer(), buffer = Buffer(device, bytes);
  return buffer.data();
}

/// Where each entry of `columns` columns of the local rows lies in the caller's order, or the other way round.
HostVector<std::int64_t> places(const DistributedMatrix& matrix, std::int64_t columns, bool inverse) {
  const auto& order = matrix.local_order();
  HostVector<std::int64_t> entries(order.size() * static_cast<std::size_t>(columns));
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto local = static_cast<std::int64_t>(i) * columns + j, given = order[i] * columns + j;
      entries[static_cast<std::size_t>(inverse ? given : local)] = inverse ? local : given;
    }
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

/// A matrix of the caller as the product takes it: on the device, row by row without gaps, in copies where it is not.
class Operand {
 public:
  /// `read`: its entries are needed.
  Operand(const Dense& given, Device device, CopiesOfOperand& copies, bool read, Stream& stream)
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

/// By way of vectors of the matrix, in host memory: rows that are on other ranks, and half precision.
void multiply_by_vectors(ProductState& with, double alpha, const ConstDense& x, double beta, const Dense& y,
                         Stream& stream) {
  with.x->set_own(x, stream);
  if (beta != 0) with.y->set_own(y, stream);
  with.product->multiply(alpha, with.x->view(), beta, with.y->view(), stream);
  with.product->wait(stream);
  with.y->own(y, stream);
}

}  // namespace

ProductState make_product(MatrixState& of, const ProductOptions& options) {
  DistributedMatrix& matrix = *of.matrix;
  ProductState made;
  made.product = matrix.product(options);
  for (const RowPlan& plan : made.product->row_plans()) {
    if (!made.kernel.empty()) made.kernel += ", ", made.why += "; ";
    made.kernel += plan.kernel_and_tunables();
    made.why += plan.why();
  }
  if (of.in_order) return made;
  if (matrix.row_route() != nullptr || is_half(matrix.type())) {
    made.x.emplace(matrix, VectorLayout::columns, matrix.type(), options.columns);
    made.y.emplace(matrix, VectorLayout::rows, sum_type(matrix.type()), options.columns);
    return made;
  }
  Stream& stream = matrix.context().stream();
  matrix.context().communicator().together([&] {
    made.to_places.emplace(places(matrix, options.columns, false), stream);
    made.from_places.emplace(places(matrix, options.columns, true), stream);
    room(made.ordered_y, matrix.context().device(), made.product->y_bytes());
  });
  return made;
}

void multiply(const MatrixState& of, ProductState& with, double alpha, const Dense& x, double beta, const Dense& y,
              Stream& stream, bool wait) {
  const DistributedMatrix& matrix = *of.matrix;
  const Device device = of.context->context.device();
  const ContextScope scope(of.context->context);
  if (with.x) return multiply_by_vectors(with, alpha, x, beta, y, stream);

  const bool square = matrix.rows() == matrix.cols(), here = x.device == device && y.device == device;
  if (of.in_order && here) {
    with.product->multiply(alpha, x, beta, y, stream);
    if (wait) with.product->wait(stream);
    return;
  }
  const std::int64_t columns = with.product->columns();
  require_dense("X", x, std::ssize(matrix.x_ids()), columns, matrix.type(), x.device);
  require_dense("Y", y, matrix.local_rows(), columns, sum_type(matrix.type()), y.device);
  const Operand from(x, device, with.copies_of_x, true, stream), to(y, device, with.copies_of_y, beta != 0, stream);
  const Dense slot = with.product->x();
  if (with.to_places && square) {
    with.to_places->pick(from.data(), x.type, slot.data, slot.type, stream);
  } else if (from.data() != slot.data) {
    copy_on_device(slot.data, from.data(), static_cast<std::size_t>(slot.rows * columns) * size_of(slot.type), stream);
  }
  void* const ordered = with.to_places ? with.ordered_y.data() : to.data();
  if (with.to_places && beta != 0) with.to_places->pick(to.data(), y.type, ordered, y.type, stream);
  with.product->multiply(alpha, beta, with.product->y_view(ordered), stream);
  if (with.from_places) with.from_places->pick(ordered, y.type, to.data(), y.type, stream);
  if (wait || !(y.device == device)) with.product->wait(stream);
  to.give_back();
  if (wait) stream.synchronize();
}

namespace {

int multiply_kept(shardmat_matrix* matrix, std::int64_t columns, double alpha, const void* x, double beta, void* y) {
  if (matrix == nullptr) return c_status([] { require(false, "the matrix is NULL"); });
  MatrixState& state = *matrix->state;
  return in_context(state.context, [&] {
    const DistributedMatrix& of = *state.matrix;
    auto found = state.kept.find(columns);
    if (found == state.kept.end()) {
      ProductOptions options;
      options.columns = columns;
      found = state.kept.emplace(columns, make_product(state, options)).first;
    }
    const bool square = of.rows() == of.cols();
    Dense from{const_cast<void*>(x),
               square ? of.own_rows() : std::ssize(of.x_ids()),
               columns,
               columns,
               DenseOrder::row_major,
               of.type(),
               Device{}};
    const Dense to{y, of.own_rows(), columns, columns, DenseOrder::row_major, sum_type(of.type()), Device{}};
    require((x != nullptr || from.rows == 0) && (y != nullptr || to.rows == 0), "X or Y is NULL");
    multiply(state, found->second, alpha, from, beta, to, state.context->context.stream(), true);
  });
}

}  // namespace
}  // namespace shardmat::c

using namespace shardmat;
using namespace shardmat::c;

int shardmat_spmv(shardmat_matrix* matrix, double alpha, const void* x, double beta, void* y) {
  return multiply_kept(matrix, 1, alpha, x, beta, y);
}
int shardmat_spmm(shardmat_matrix* matrix, int64_t columns, double alpha, const void* x, double beta, void* y) {
  return multiply_kept(matrix, columns, alpha, x, beta, y);
}

int shardmat_product_create(shardmat_matrix* matrix, int64_t columns, const shardmat_product_options* options,
                            shardmat_product** product) {
  if (product != nullptr) *product = nullptr;
  if (matrix == nullptr || product == nullptr)
    return c_status([] { require(false, "the matrix is NULL, or there is nowhere to put the product"); });
  return in_context(matrix->state->context, [&] {
    ProductOptions wanted;
    wanted.columns = columns;
    matrix->state->context->communicator.together([&] {
      const shardmat_product_options chosen = read_struct(options, "shardmat_product_options");
      if (chosen.kernel != nullptr) {
        wanted.plan = matrix->state->matrix->options().plan;
        wanted.plan->kernel = chosen.kernel;
        wanted.plan->policy.clear();
      }
      if (chosen.exchange != nullptr) wanted.exchange = chosen.exchange;
      if (chosen.column_major_y != 0) wanted.y_order = DenseOrder::column_major;
    });
    *product = new shardmat_product{matrix->state, make_product(*matrix->state, wanted)};
  });
}

void shardmat_product_destroy(shardmat_product* product) {
  if (product != nullptr) destroy(product, product->matrix->context);
}

int shardmat_product_multiply(shardmat_product* product, double alpha, const shardmat_dense* x, double beta,
                              const shardmat_dense* y, void* stream) {
  if (product == nullptr) return c_status([] { require(false, "the product is NULL"); });
  ContextState& context = *product->matrix->context;
  return in_context(product->matrix->context, [&] {
    const Dense from = dense(x, "X", context), to = dense(y, "Y", context);
    on_stream(context, stream,
              [&](Stream& on, bool wait) { multiply(*product->matrix, product->state, alpha, from, beta, to, on, wait); });
  });
}

int shardmat_product_x(shardmat_product* product, void** data) {
  if (product == nullptr) return c_status([] { require(false, "the product is NULL"); });
  return in_context(product->matrix->context, [&] {
    require(data != nullptr, "there is nowhere to put the address");
    *data = product->matrix->in_order ? product->state.product->x().data : nullptr;
  });
}

int shardmat_product_get_info(shardmat_product* product, shardmat_product_info* info) {
  if (product == nullptr) return c_status([] { require(false, "the product is NULL"); });
  return in_context(product->matrix->context, [&] {
    const Product& of = *product->state.product;
    write_struct(info,
                 {0, of.columns(), of.device_bytes(), of.bytes_received(), product->state.kernel.c_str(),
                  product->state.why.c_str(), of.exchange().name().data()},
                 "there is no shardmat_product_info with its size set");
  });
}
