#include <fmt/format.h>

#include <functional>
#include <utility>

#include "runtime/c/handles.h"

namespace shardmat::c {
namespace {

constexpr const char* kNoInfo = "there is no shardmat_matrix_info with its size set";

MatrixOptions matrix_options(const shardmat_matrix_options& given, ValueType otherwise) {
  MatrixOptions options;
  options.type = given.type == nullptr ? otherwise : parse_value_type(given.type);
  options.right_hand_sides = given.columns == 0 ? 1 : given.columns;
  options.plan.kernel = text(given.kernel, "auto");
  options.plan.policy = text(given.policy);
  options.plan.reproducible = given.reproducible != 0;
  if (given.products != 0) options.plan.products = given.products;
  const std::string storage = text(given.storage, "general");
  require(storage == "general" || storage == "symmetric", "the storage must be general or symmetric");
  if (storage == "symmetric") options.plan.storage = StoredEntries::half;
  options.exchange = text(given.exchange, "auto");
  options.host_rows = given.drop_rows != 0 ? HostRows::drop : HostRows::keep;
  options.values = given.updatable != 0 ? Values::updatable : Values::fixed;
  return options;
}

bool orders_rows(const DistributedMatrix& matrix) {
  const auto& order = matrix.local_order();
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<std::int64_t>(i)) return true;
  return false;
}

/// `load`: makes the matrix, of which this rank gave `own_values` values, or nothing to have all of its nonzeros.
int make(
    shardmat_context* context, shardmat_matrix** matrix,
    const std::function<std::unique_ptr<DistributedMatrix>(ContextState&, std::optional<std::int64_t>& own_values)>& load) {
  if (matrix != nullptr) *matrix = nullptr;
  if (context == nullptr || matrix == nullptr)
    return c_status([] { require(false, "the context is NULL, or there is nowhere to put the matrix"); });
  return in_context(context->state, [&] {
    const ContextScope scope(context->state->context);
    auto state = std::make_shared<MatrixState>();
    state->context = context->state;
    std::optional<std::int64_t> own_values;
    state->matrix = load(*context->state, own_values);
    const DistributedMatrix& made = *state->matrix;
    state->own_values = own_values.value_or(made.local_nnz());
    const bool in_order = made.row_route() == nullptr && !orders_rows(made);
    state->in_order = context->state->communicator.all_reduce(in_order ? 1 : 0, Reduction::min) == 1;
    *matrix = new shardmat_matrix{std::move(state)};
  });
}

std::span<const std::int64_t> span(const std::int64_t* from, std::int64_t count, const char* what) {
  require(count >= 0, "a number of rows or entries is negative");
  if (count > 0 && from == nullptr) throw Error(ErrorKind::usage, fmt::format("{} is NULL", what));
  return {from, static_cast<std::size_t>(count)};
}

int write_ids(shardmat_matrix* matrix, std::int64_t* ids, VectorLayout layout) {
  if (matrix == nullptr) return c_status([] { require(false, "the matrix is NULL"); });
  return in_context(matrix->state->context, [&] {
    const DistributedMatrix& of = *matrix->state->matrix;
    const bool by_rows = layout == VectorLayout::rows || of.rows() == of.cols();
    require(!by_rows || of.row_route() == nullptr,
            "a partitioner spread the rows anew; vectors are in the rows that this rank gave");
    const HostVector<std::int64_t>& from = layout == VectorLayout::rows ? of.row_ids() : of.x_ids();
    require(ids != nullptr || from.empty(), "there is nowhere to put the numbers");
    for (std::size_t i = 0; i < from.size(); ++i)
      ids[by_rows ? of.local_order()[i] : static_cast<std::int64_t>(i)] = from[i];
  });
}

}  // namespace

OwnRows own_rows(const shardmat_rows* given, ContextState& context, std::int64_t& count) {
  require(given != nullptr, "the rows are NULL");
  const shardmat_rows known = read_struct(given, "shardmat_rows");
  require(known.rows >= 0, "the number of rows is negative");
  OwnRows rows;
  rows.range = {known.first_row, known.rows};
  rows.cols = known.cols;
  rows.values_type = value_type_of_c(known.value_type, "the values");
  rows.row_ptr = span(known.row_ptr, known.rows + 1, "row_ptr");
  std::int64_t ends[2];
  rows.device = device_of(known.on_device, context);
  if (known.on_device != 0) {
    copy_to_host(&ends[0], known.row_ptr, sizeof ends[0], context.context.stream());
    copy_to_host(&ends[1], known.row_ptr + known.rows, sizeof ends[1], context.context.stream());
  } else {
    ends[0] = known.row_ptr[0];
    ends[1] = known.row_ptr[known.rows];
  }
  if (ends[1] < ends[0])
    throw Error(ErrorKind::input, fmt::format("row_ptr falls from {} to {}; it must ascend", ends[0], ends[1]));
  count = ends[1] - ends[0];
  rows.columns = span(known.columns, count, "columns");
  rows.values = known.values;
  require(known.values != nullptr || count == 0, "values is NULL");
  return rows;
}

}  // namespace shardmat::c

using namespace shardmat;
using namespace shardmat::c;

int shardmat_matrix_from_rows(shardmat_context* context, const shardmat_rows* given, const shardmat_matrix_options* options,
                              shardmat_matrix** matrix) {
  return make(context, matrix, [&](ContextState& state, std::optional<std::int64_t>& own_values) {
    OwnRows rows;
    MatrixOptions wanted;
    std::string method;
    state.communicator.together([&] {
      const shardmat_matrix_options chosen = read_struct(options, "shardmat_matrix_options");
      std::int64_t count = 0;
      rows = own_rows(given, state, count);
      own_values = count;
      method = text(chosen.method);
      wanted = matrix_options(chosen, rows.values_type);
    });
    return std::make_unique<DistributedMatrix>(take_rows(rows, state.context, wanted.type, method), state.context, wanted);
  });
}

int shardmat_matrix_from_triplets(shardmat_context* context, const shardmat_triplets* given,
                                  const shardmat_matrix_options* options, shardmat_matrix** matrix) {
  return make(context, matrix, [&](ContextState& state, std::optional<std::int64_t>& own_values) {
    OwnTriplets triplets;
    MatrixOptions wanted;
    std::string method;
    state.communicator.together([&] {
      require(given != nullptr, "the triplets are NULL");
      const shardmat_triplets known = read_struct(given, "shardmat_triplets");
      const shardmat_matrix_options chosen = read_struct(options, "shardmat_matrix_options");
      triplets.range = {known.first_row, known.rows};
      triplets.cols = known.cols;
      triplets.rows = span(known.row, known.count, "row");
      triplets.columns = span(known.column, known.count, "column");
      triplets.values = known.values;
      require(known.values != nullptr || known.count == 0, "values is NULL");
      triplets.values_type = value_type_of_c(known.value_type, "the values");
      triplets.device = device_of(known.on_device, state);
      own_values = known.count;
      method = text(chosen.method);
      wanted = matrix_options(chosen, triplets.values_type);
    });
    return std::make_unique<DistributedMatrix>(take_triplets(triplets, state.context, wanted.type, method), state.context,
                                               wanted);
  });
}

int shardmat_matrix_from_file(shardmat_context* context, const char* file, const shardmat_matrix_options* options,
                              shardmat_matrix** matrix) {
  return make(context, matrix, [&](ContextState& state, std::optional<std::int64_t>&) {
    LoadOptions wanted;
    OpenOptions open;
    state.communicator.together([&] {
      require(file != nullptr, "the name of the file is NULL");
      const shardmat_matrix_options chosen = read_struct(options, "shardmat_matrix_options");
      static_cast<MatrixOptions&>(wanted) = matrix_options(chosen, ValueType::f64);
      wanted.method = text(chosen.method, "nnz");
      open.transposed = chosen.transposed != 0;
    });
    open.method = wanted.method;
    const MatrixSource source = open_matrix(file, state.context, open);
    return std::make_unique<DistributedMatrix>(source, state.context, wanted);
  });
}

int shardmat_file_shape(shardmat_context* context, const char* file, int64_t* rows, int64_t* cols) {
  if (context == nullptr) return c_status([] { require(false, "the context is NULL"); });
  return in_context(context->state, [&] {
    context->state->communicator.together([&] {
      require(file != nullptr && rows != nullptr && cols != nullptr,
              "there is no name of a file, or nowhere to put its size");
    });
    const MatrixSource source = open_matrix(file, context->state->context);
    *rows = source.rows->rows();
    *cols = source.rows->cols();
  });
}

void shardmat_matrix_destroy(shardmat_matrix* matrix) {
  if (matrix != nullptr) destroy(matrix, matrix->state->context);
}

int shardmat_matrix_get_info(shardmat_matrix* matrix, shardmat_matrix_info* info) {
  if (matrix == nullptr) return c_status([] { require(false, "the matrix is NULL"); });
  return in_context(matrix->state->context, [&] {
    const DistributedMatrix& of = *matrix->state->matrix;
    const auto number = [](ValueType type) {
      return type == ValueType::f64   ? SHARDMAT_F64
             : type == ValueType::f32 ? SHARDMAT_F32
             : type == ValueType::f16 ? SHARDMAT_F16
                                      : SHARDMAT_BF16;
    };
    const std::int64_t own_cols = of.rows() == of.cols() ? of.own_rows() : std::ssize(of.x_ids());
    write_struct(
        info,
        {0, of.rows(), of.cols(), of.nnz(), of.own_rows(), own_cols, matrix->state->own_values, number(of.type()),
         number(sum_type(of.type())), of.options().values == Values::updatable ? 1 : 0, of.device_bytes(), of.host_bytes()},
        kNoInfo);
  });
}

int shardmat_matrix_row_ids(shardmat_matrix* matrix, int64_t* ids) { return write_ids(matrix, ids, VectorLayout::rows); }
int shardmat_matrix_col_ids(shardmat_matrix* matrix, int64_t* ids) { return write_ids(matrix, ids, VectorLayout::columns); }

int shardmat_matrix_update_values(shardmat_matrix* matrix, const void* values, int64_t count, int type, int on_device,
                                  void* stream) {
  if (matrix == nullptr) return c_status([] { require(false, "the matrix is NULL"); });
  ContextState& context = *matrix->state->context;
  return in_context(matrix->state->context, [&] {
    ConstDense view;
    view.data = values;
    view.rows = count;
    context.communicator.together([&] {
      view.type = value_type_of_c(type, "the new values");
      view.device = device_of(on_device, context);
    });
    on_stream(context, stream, [&](Stream& on, bool wait) {
      matrix->state->matrix->update_values(view, on);
      if (wait) on.synchronize();
    });
  });
}

int shardmat_matrix_zero_rows_columns(shardmat_matrix* matrix, const int64_t* rows, int64_t count, double diagonal,
                                      const void* x, void* b) {
  if (matrix == nullptr) return c_status([] { require(false, "the matrix is NULL"); });
  return in_context(matrix->state->context, [&] {
    DistributedMatrix& of = *matrix->state->matrix;
    Context& context = of.context();
    std::span<const std::int64_t> named;
    const bool of_vectors = context.communicator().together([&] {
      named = span(rows, count, "rows");
      require((x == nullptr) == (b == nullptr) || of.own_rows() == 0, "give both x and b, or neither of them");
      return x != nullptr && b != nullptr;
    });
    // A rank without rows may have no memory for x and b; the others say whether there are any.
    if (context.communicator().all_reduce(of_vectors ? 1 : 0, Reduction::max) == 0)
      return of.zero_rows_columns(named, diagonal, nullptr, nullptr, context.stream());
    context.communicator().together([&] { require(of_vectors || of.own_rows() == 0, "x and b are given on other ranks"); });
    const ValueType type = sum_type(of.type());
    const Dense to{b, of.own_rows(), 1, 1, DenseOrder::row_major, type, Device{}};
    Dense from = to;
    from.data = const_cast<void*>(x);
    DistributedVector known(of, VectorLayout::rows, type), right(of, VectorLayout::rows, type);
    known.set_own(from, context.stream());
    right.set_own(to, context.stream());
    of.zero_rows_columns(named, diagonal, &known, &right, context.stream());
    right.own(to, context.stream());
  });
}
