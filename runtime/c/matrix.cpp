#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <utility>

#include "kernels/choose/spmm_registry.h"
#include "partition/files/file_digest.h"
#include "runtime/c/handles.h"

namespace shardmat::c {
namespace {

constexpr const char* kNoInfo = "there is no shardmat_matrix_info with its size set";

MatrixOptions matrix_options(const shardmat_matrix_options& given, ValueType otherwise, const ContextState& context) {
  require(given.columns >= 0, "the number of columns in the options is negative");
  require(given.products >= 0 && std::isfinite(given.products), "the number of products expected is no number, or negative");
  MatrixOptions options;
  options.type = given.type == nullptr ? otherwise : parse_value_type(given.type);
  options.right_hand_sides = given.columns == 0 ? 1 : given.columns;
  require_count(options.right_hand_sides);
  options.plan.kernel = text(given.kernel, "auto");
  require_kernel(options.plan.kernel, context.context.backend());  // before a file is read
  options.plan.policy = text(given.policy);
  options.plan.reproducible = given.reproducible != 0;
  if (given.products != 0) options.plan.products = given.products;
  const std::string storage = text(given.storage, "general");
  require(storage == "general" || storage == "symmetric", "the storage must be general or symmetric");
  if (storage == "symmetric") options.plan.storage = StoredEntries::half;
  options.exchange = text(given.exchange, "auto");
  options.host_rows = given.drop_rows != 0 ? HostRows::drop : HostRows::keep;
  require(given.node_block_size >= 0, "node_block_size is negative");
  options.values = given.updatable != 0 ? Values::updatable : Values::fixed;
  return options;
}

/// Of the caller's options: what all ranks must give alike. A rank without entries may leave out their type.
std::vector<Given> listed(const shardmat_matrix_options& o) {
  return {option("columns", static_cast<double>(o.columns)),
          option("kernel", o.kernel),
          option("policy", o.policy),
          option("exchange", o.exchange),
          option("storage", o.storage),
          option("method", o.method),
          option("products", o.products),
          option("reproducible", o.reproducible),
          option("updatable", o.updatable),
          option("drop_rows", o.drop_rows != 0),
          option("transposed", o.transposed),
          option("node_block_size", static_cast<double>(o.node_block_size))};
}

void require_not_transposed(const shardmat_matrix_options& given) {
  require(given.transposed == 0, "only a matrix of a file can be transposed; give the transposed rows or triplets");
}

/// `give`: what the matrix is made of, as GroupMatrix takes it.
template <class Give>
int make(shardmat_context* context, const shardmat_matrix_options* options, const char* file, shardmat_matrix** matrix,
         const Give& give) {
  if (matrix != nullptr) *matrix = nullptr;
  if (!is_handle(context)) return no_handle(context, "the context");
  if (matrix == nullptr) return c_status([] { require(false, "there is nowhere to put the matrix"); });
  return in_context(context->state, [&] {
    require_same(*context->state, [&] {
      std::vector<Given> list = listed(read_struct(options, "shardmat_matrix_options"));
      list.push_back({"the file", text(file), file == nullptr ? std::string() : file_digest(file)});
      return list;
    });
    auto state = std::make_shared<MatrixState>();
    state->context = context->state;
    state->matrix.emplace(context->state->context, std::function([&] { return give(*context->state); }));
    *matrix = new shardmat_matrix{{}, std::move(state)};
  });
}

std::span<const std::int64_t> span(const std::int64_t* from, std::int64_t count, const char* what) {
  require_size(count, sizeof(std::int64_t), what);
  if (count > 0 && from == nullptr) throw Error(ErrorKind::usage, fmt::format("{} is NULL", what));
  return {from, static_cast<std::size_t>(count)};
}

int write_ids(shardmat_matrix* matrix, std::int64_t* ids, VectorLayout layout) {
  if (!is_handle(matrix)) return no_handle(matrix, "the matrix");
  return in_context(matrix->state->context, [&] {
    const HostVector<std::int64_t> from = matrix->state->matrix->ids(layout);
    require(ids != nullptr || from.empty(), "there is nowhere to put the numbers");
    std::copy(from.begin(), from.end(), ids);
  });
}

}  // namespace

OwnRows own_rows(const shardmat_rows* given, ContextState& context) {
  require(given != nullptr, "the rows are NULL");
  const shardmat_rows known = read_struct(given, "shardmat_rows");
  require_size(known.rows, sizeof(std::int64_t), "the number of rows");
  require_size(known.cols, 1, "the number of columns");
  require_size(known.first_row, 1, "the first row");
  OwnRows rows;
  rows.range = {known.first_row, known.rows};
  rows.cols = known.cols;
  rows.values = {known.values, value_type_of_c(known.value_type, "the values")};
  rows.row_ptr = span(known.row_ptr, known.rows + 1, "row_ptr");
  std::int64_t ends[2];
  rows.device = device_of(known.on_device, context);
  if (known.on_device != 0) {
    if (context.context.has_feeders())
      context.context.require_on_device("row_ptr", known.row_ptr, rows.row_ptr.size_bytes());
    Stream& stream = context.context.stream_of(rows.device);
    copy_to_host(&ends[0], known.row_ptr, sizeof ends[0], stream);
    copy_to_host(&ends[1], known.row_ptr + known.rows, sizeof ends[1], stream);
  } else {
    ends[0] = known.row_ptr[0];
    ends[1] = known.row_ptr[known.rows];
  }
  if (ends[1] < ends[0])
    throw Error(ErrorKind::input, fmt::format("row_ptr falls from {} to {}; it must ascend", ends[0], ends[1]));
  const std::int64_t count = ends[1] - ends[0];
  rows.columns = span(known.columns, count, "columns");
  require(known.values != nullptr || count == 0, "values is NULL");
  return rows;
}

}  // namespace shardmat::c

using namespace shardmat;
using namespace shardmat::c;

int shardmat_matrix_from_rows(shardmat_context* context, const shardmat_rows* given, const shardmat_matrix_options* options,
                              shardmat_matrix** matrix) {
  return make(context, options, nullptr, matrix, [&](ContextState& state) {
    const shardmat_matrix_options chosen = read_struct(options, "shardmat_matrix_options");
    require_not_transposed(chosen);
    const OwnRows rows = own_rows(given, state);
    return GivenRows{rows, matrix_options(chosen, rows.values.type, state), text(chosen.method), chosen.type == nullptr,
                     chosen.node_block_size};
  });
}

int shardmat_matrix_from_triplets(shardmat_context* context, const shardmat_triplets* given,
                                  const shardmat_matrix_options* options, shardmat_matrix** matrix) {
  return make(context, options, nullptr, matrix, [&](ContextState& state) {
    require(given != nullptr, "the triplets are NULL");
    const shardmat_triplets known = read_struct(given, "shardmat_triplets");
    const shardmat_matrix_options chosen = read_struct(options, "shardmat_matrix_options");
    require_not_transposed(chosen);
    OwnTriplets triplets;
    require_size(known.rows, sizeof(std::int64_t), "the number of rows");
    require_size(known.cols, 1, "the number of columns");
    require_size(known.first_row, 1, "the first row");
    triplets.range = {known.first_row, known.rows};
    triplets.cols = known.cols;
    triplets.rows = span(known.row, known.count, "row");
    triplets.columns = span(known.column, known.count, "column");
    triplets.values.data = known.values;
    require(known.values != nullptr || known.count == 0, "values is NULL");
    triplets.values.type = value_type_of_c(known.value_type, "the values");
    triplets.device = device_of(known.on_device, state);
    return GivenTriplets{triplets, matrix_options(chosen, triplets.values.type, state), text(chosen.method),
                         chosen.type == nullptr, chosen.node_block_size};
  });
}

int shardmat_matrix_from_file(shardmat_context* context, const char* file, const shardmat_matrix_options* options,
                              shardmat_matrix** matrix) {
  return make(context, options, file, matrix, [&](ContextState& state) {
    require(file != nullptr, "the name of the file is NULL");
    const shardmat_matrix_options chosen = read_struct(options, "shardmat_matrix_options");
    GivenFile given;
    given.name = file;
    static_cast<MatrixOptions&>(given.options) = matrix_options(chosen, ValueType::f64, state);
    given.options.method = text(chosen.method, "nnz");
    given.options.node_block_size = chosen.node_block_size;
    given.transposed = chosen.transposed != 0;
    return given;
  });
}

int shardmat_file_shape(shardmat_context* context, const char* file, int64_t* rows, int64_t* cols) {
  if (!is_handle(context)) return no_handle(context, "the context");
  return in_context(context->state, [&] {
    const MatrixShape shape = shape_of_file(context->state->context, [&] {
      require(file != nullptr && rows != nullptr && cols != nullptr,
              "there is no name of a file, or nowhere to put its size");
      return std::string(file);
    });
    *rows = shape.rows;
    *cols = shape.cols;
  });
}

void shardmat_matrix_destroy(shardmat_matrix* matrix) {
  if (is_handle(matrix)) destroy(matrix, matrix->state->context);
}

int shardmat_matrix_get_info(shardmat_matrix* matrix, shardmat_matrix_info* info) {
  if (!is_handle(matrix)) return no_handle(matrix, "the matrix");
  return in_context(matrix->state->context, [&] {
    const GroupMatrix& of = *matrix->state->matrix;
    const auto number = [](ValueType type) {
      return type == ValueType::f64   ? SHARDMAT_F64
             : type == ValueType::f32 ? SHARDMAT_F32
             : type == ValueType::f16 ? SHARDMAT_F16
                                      : SHARDMAT_BF16;
    };
    const bool owns = of.context().owns();
    write_struct(info,
                 {0, of.rows(), of.cols(), of.nnz(), of.own_rows(), of.own_cols(), of.own_values(), number(of.type()),
                  number(sum_type(of.type())), of.updatable() ? 1 : 0, owns ? of.matrix().device_bytes() : 0,
                  owns ? of.matrix().host_bytes() : 0, of.node_block_size()},
                 kNoInfo);
  });
}

int shardmat_matrix_row_ids(shardmat_matrix* matrix, int64_t* ids) { return write_ids(matrix, ids, VectorLayout::rows); }
int shardmat_matrix_col_ids(shardmat_matrix* matrix, int64_t* ids) { return write_ids(matrix, ids, VectorLayout::columns); }

int shardmat_matrix_update_values(shardmat_matrix* matrix, const void* values, int64_t count, int type, int on_device,
                                  void* stream) {
  if (!is_handle(matrix)) return no_handle(matrix, "the matrix");
  ContextState& context = *matrix->state->context;
  return in_context(matrix->state->context, [&] {
    on_stream(context, stream, [&](Stream& on, bool wait) {
      matrix->state->matrix->update_values(
          [&] {
            ConstDense view;
            view.data = values;
            view.rows = count;
            view.type = value_type_of_c(type, "the new values");
            view.device = device_of(on_device, context);
            return view;
          },
          on);
      if (wait) on.synchronize();
    });
  });
}

int shardmat_matrix_zero_rows_columns(shardmat_matrix* matrix, const int64_t* rows, int64_t count, double diagonal,
                                      const void* x, void* b) {
  if (!is_handle(matrix)) return no_handle(matrix, "the matrix");
  return in_context(matrix->state->context, [&] {
    matrix->state->matrix->zero_rows_columns([&] {
      const GroupMatrix& of = *matrix->state->matrix;
      ZeroedRows given;
      given.rows = span(rows, count, "rows");
      given.diagonal = diagonal;
      require((x == nullptr) == (b == nullptr) || of.own_rows() == 0, "give both x and b, or neither of them");
      given.with_vectors = x != nullptr && b != nullptr;
      given.b = {b, of.own_rows(), 1, 1, DenseOrder::row_major, sum_type(of.type()), Device{}};
      given.x = given.b;
      given.x.data = x;
      return given;
    });
  });
}
