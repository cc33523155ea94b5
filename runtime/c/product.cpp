#include <algorithm>
#include <utility>

#include "kernels/choose/spmm_registry.h"
#include "runtime/c/handles.h"

namespace shardmat::c {
namespace {

/// How a product is made: with the matrix or with its transpose.
enum class Side { matrix, transpose };

GroupProduct make_product(GroupMatrix& of, std::int64_t columns, Side side) {
  if (side == Side::transpose) return of.transposed_product([&] { return columns; });
  return of.product([&] {
    ProductOptions options;
    options.columns = columns;
    return options;
  });
}

int multiply_kept(shardmat_matrix* matrix, std::int64_t columns, double alpha, const void* x, double beta, void* y,
                  Side side) {
  if (!is_handle(matrix)) return no_handle(matrix, "the matrix");
  MatrixState& state = *matrix->state;
  return in_context(state.context, [&] {
    GroupMatrix& of = *state.matrix;
    auto& kept = side == Side::matrix ? state.kept : state.kept_transposed;
    auto found = kept.find(columns);
    if (found == kept.end()) {
      require_same(*state.context, [&] { return std::vector<Given>{option("columns", static_cast<double>(columns))}; });
      found = kept.emplace(columns, make_product(of, columns, side)).first;
    }
    const auto vectors = [&] {
      GroupMatrix::Vectors given;
      given.y = {y, of.own_rows(), columns, columns, DenseOrder::row_major, sum_type(of.type()), Device{}};
      given.x = given.y;
      given.x.data = x, given.x.rows = of.own_cols(), given.x.type = of.type();
      if (side == Side::transpose) std::swap(given.x.rows, given.y.rows);
      require((x != nullptr || given.x.rows == 0) && (y != nullptr || given.y.rows == 0), "X or Y is NULL");
      return given;
    };
    of.multiply(found->second, alpha, beta, vectors, state.context->context.stream());
  });
}

}  // namespace
}  // namespace shardmat::c

using namespace shardmat;
using namespace shardmat::c;

int shardmat_spmv(shardmat_matrix* matrix, double alpha, const void* x, double beta, void* y) {
  return multiply_kept(matrix, 1, alpha, x, beta, y, Side::matrix);
}
int shardmat_spmm(shardmat_matrix* matrix, int64_t columns, double alpha, const void* x, double beta, void* y) {
  return multiply_kept(matrix, columns, alpha, x, beta, y, Side::matrix);
}
int shardmat_spmv_transposed(shardmat_matrix* matrix, double alpha, const void* x, double beta, void* y) {
  return multiply_kept(matrix, 1, alpha, x, beta, y, Side::transpose);
}
int shardmat_spmm_transposed(shardmat_matrix* matrix, int64_t columns, double alpha, const void* x, double beta, void* y) {
  return multiply_kept(matrix, columns, alpha, x, beta, y, Side::transpose);
}

int shardmat_product_create(shardmat_matrix* matrix, int64_t columns, const shardmat_product_options* options,
                            shardmat_product** product) {
  if (product != nullptr) *product = nullptr;
  if (!is_handle(matrix)) return no_handle(matrix, "the matrix");
  if (product == nullptr) return c_status([] { require(false, "there is nowhere to put the product"); });
  return in_context(matrix->state->context, [&] {
    GroupMatrix& of = *matrix->state->matrix;
    require_same(*matrix->state->context, [&] {
      const shardmat_product_options chosen = read_struct(options, "shardmat_product_options");
      return std::vector<Given>{option("columns", static_cast<double>(columns)), option("kernel", chosen.kernel),
                                option("exchange", chosen.exchange), option("transposed", chosen.transposed != 0)};
    });
    const auto give = [&] {
      ProductOptions wanted;
      wanted.columns = columns;
      const shardmat_product_options chosen = read_struct(options, "shardmat_product_options");
      if (chosen.kernel != nullptr) {
        require_kernel(chosen.kernel, of.context().backend());
        wanted.plan = of.plan();
        wanted.plan->kernel = chosen.kernel;
        wanted.plan->policy.clear();
      }
      if (chosen.exchange != nullptr) wanted.exchange = chosen.exchange;
      if (chosen.column_major_y != 0) wanted.y_order = DenseOrder::column_major;
      return wanted;
    };
    const auto give_columns = [&] {
      const shardmat_product_options chosen = read_struct(options, "shardmat_product_options");
      require(chosen.kernel == nullptr && chosen.exchange == nullptr,
              "a transposed product takes neither kernel nor exchange: it reads the matrix as it is stored");
      return columns;
    };
    const bool transposed =
        read_struct(options, "shardmat_product_options").transposed != 0;  // the same on all ranks by now
    GroupProduct made = transposed ? of.transposed_product(give_columns) : of.product(give);
    *product = new shardmat_product{{}, matrix->state, std::move(made)};
  });
}

void shardmat_product_destroy(shardmat_product* product) {
  if (is_handle(product)) destroy(product, product->matrix->context);
}

int shardmat_product_multiply(shardmat_product* product, double alpha, const shardmat_dense* x, double beta,
                              const shardmat_dense* y, void* stream) {
  if (!is_handle(product)) return no_handle(product, "the product");
  ContextState& context = *product->matrix->context;
  return in_context(product->matrix->context, [&] {
    on_stream(context, stream, [&](Stream& on, bool wait) {
      product->matrix->matrix->multiply(
          product->state, alpha, beta,
          [&] {
            return GroupMatrix::Vectors{dense(x, "X", context), dense(y, "Y", context)};
          },
          on, wait);
    });
  });
}

int shardmat_product_x(shardmat_product* product, void** data) {
  if (!is_handle(product)) return no_handle(product, "the product");
  return in_context(product->matrix->context, [&] {
    require(data != nullptr, "there is nowhere to put the address");
    const bool own_place = !product->matrix->context->context.has_feeders() && product->state.ordered != nullptr &&
                           product->state.ordered->in_order();
    *data = own_place ? product->state.ordered->product().x().data : nullptr;
  });
}

int shardmat_product_get_info(shardmat_product* product, shardmat_product_info* info) {
  if (!is_handle(product)) return no_handle(product, "the product");
  return in_context(product->matrix->context, [&] {
    const GroupProduct& of = product->state;
    std::int64_t device_bytes = 0, bytes_received = 0;
    const auto read = [&](const auto& made) { device_bytes = made.device_bytes(), bytes_received = made.bytes_received(); };
    if (of.ordered != nullptr) read(of.ordered->product());
    if (of.transposed != nullptr) read(of.transposed->product());
    write_struct(info, {0, of.columns, device_bytes, bytes_received, of.kernel.c_str(), of.why.c_str(), of.exchange.c_str()},
                 "there is no shardmat_product_info with its size set");
  });
}
