// Products of many widths on one storage, and operands in other memory or order.
#include "runtime/matrix/product.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "comm/exchange/exchange.h"
#include "kernels/vector.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/matrix/vectors.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

using test::expect_product;
using test::multiply_once;
using test::options_for;
using test::whole_matrix;

void multiplies_any_width_on_one_storage(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  for (const LocalSort sort : {LocalSort::none, LocalSort::by_length}) {
    for (const char* specification : {"elasticity:n=7", "random:n=500,cols=700", "rmat:scale=9"}) {
      SCOPED_TRACE(specification);
      const HostCsr a = whole_matrix(specification);
      const MatrixSource source = open_matrix(specification, world());
      LoadOptions options = options_for(c);
      options.sort = sort;
      DistributedMatrix matrix(source, context, options);
      std::vector<std::unique_ptr<Product>> products;
      for (const std::int64_t columns : {1, 8, 3, 32, 1}) products.push_back(matrix.product(columns));
      for (int round = 0; round < 2; ++round)  // all alive, in turn
        for (const auto& product : products) expect_product(*product, a, multiply_once(*product, stream));
      products.erase(products.begin() + 1, products.begin() + 3);
      expect_product(*products.back(), a, multiply_once(*products.back(), stream));
    }
  }
}

/// As in BLAS: NaN in X does not reach Y, in any order of Y with any leading dimension.
void alpha_of_zero_leaves_x_unread(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  DistributedMatrix matrix(open_matrix("elasticity:n=5", world()), context, options_for(c));
  for (const std::int64_t columns : {1, 3})
    for (const DenseOrder order : {DenseOrder::row_major, DenseOrder::column_major})
      for (const std::int64_t gap : {0, 2})
        for (const double beta : {0.0, -0.5}) {
          if (columns == 1 && (gap > 0 || order == DenseOrder::column_major)) continue;
          ProductOptions options;
          options.columns = columns, options.y_order = order;
          const auto product = matrix.product(options);
          fill_bytes(product->x().data, 0xff, static_cast<std::size_t>(product->x().rows * columns) * size_of(c.type),
                     stream);
          Dense y = product->y_view(nullptr);
          const bool by_rows = order == DenseOrder::row_major;
          y.order = order, y.leading = (by_rows ? columns : y.rows) + gap;
          const std::int64_t entries = (by_rows ? y.rows : columns) * y.leading;
          HostVector<double> before(static_cast<std::size_t>(entries));
          for (std::size_t i = 0; i < before.size(); ++i)
            before[i] = test::x_at(static_cast<std::int64_t>(i), columns) + 0.25;
          const Buffer memory(context.device(), before.size() * size_of(c.type));
          to_device(memory.data(), before, c.type, stream);
          y.data = memory.data();
          product->multiply(0, product->x(), beta, y, stream);
          product->wait(stream);
          const HostVector<double> after = to_host(memory.data(), entries, c.type, stream);
          for (std::int64_t i = 0; i < entries; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const bool in_gap = i % y.leading >= y.leading - gap;
            EXPECT_EQ(after[at], in_gap ? before[at] : beta * before[at]) << i;
          }
        }
}
SHARDMAT_VECTOR_TEST(Product, AlphaOfZeroLeavesXUnread, alpha_of_zero_leaves_x_unread)

void stores_no_second_format_where_kernels_do(const Case& c) {
  Context& context = context_of(c);
  const MatrixSource source = open_matrix("elasticity:n=6", world());
  LoadOptions options = options_for(c);
  options.host_rows = HostRows::drop;
  options.plan.kernel = c.backend == BackendChoice::host ? "csr_host" : "csr_vector";
  DistributedMatrix matrix(source, context, options);
  EXPECT_GT(matrix.host_bytes(), 0);
  EXPECT_EQ(matrix.device_bytes(), 0);
  const auto one = matrix.product();
  EXPECT_EQ(matrix.host_bytes(), 0);
  for (const RowPlan& plan : one->row_plans())  // on the host, the rows that were read became the storage
    EXPECT_EQ(plan.storage().value_arrays()[0]->is_shared(), c.backend == BackendChoice::host && plan.storage().nnz > 0);
  const std::int64_t bytes = matrix.device_bytes();
  ProductOptions wide;
  wide.columns = 8;
  wide.plan = PlanRequest{};
  const auto several = matrix.product(wide);
  EXPECT_EQ(matrix.device_bytes(), bytes);
  const HostCsr a = whole_matrix("elasticity:n=6");
  expect_product(*several, a, multiply_once(*several, context.stream()));
  expect_product(*one, a, multiply_once(*one, context.stream()));

  PlanRequest other;
  other.kernel = "ell_r_host";
  if (c.backend == BackendChoice::cuda) other.kernel = "ell_r";
  ProductOptions ell;
  ell.plan = other;
  const std::string message = error_of(ErrorKind::usage, [&] { matrix.product(ell); });
  EXPECT_NE(message.find("stored (csr)"), std::string::npos) << message;
  EXPECT_NE(message.find("host rows were dropped"), std::string::npos) << message;
}

/// Rows that are dropped go while they are stored. Products have the bits of those of a matrix that keeps its rows.
void releases_rows_while_they_are_stored(const Case& c) {
  if (c.backend != BackendChoice::host) return;
  Context& context = context_of(c);
  for (const char* kernel : {"packed_host", "bcsr_host", "auto"})
    for (const std::int64_t columns : {1, 4})
      for (const char* specification : {"elasticity:n=9", "random:n=3000,cols=2000", "rmat:scale=9"}) {
        SCOPED_TRACE(std::string(kernel) + " on " + specification);
        LoadOptions options = options_for(c);
        options.plan.kernel = kernel, options.plan.measure = false;
        if (options.exchange == "auto") options.exchange = "allgather";  // bits depend on the exchange, which auto measures
        options.right_hand_sides = columns;
        const MatrixSource source = open_matrix(specification, world());
        DistributedMatrix keeps(source, context, options);
        options.host_rows = HostRows::drop;
        DistributedMatrix drops(source, context, options);
        ProductOptions wrong, other;
        wrong.columns = columns;
        wrong.plan.emplace(), other.plan.emplace();
        wrong.plan->kernel = "csr_host", wrong.plan->policy = "no_such_policy=1";
        error_of(ErrorKind::usage, [&] { drops.product(wrong); });  // before anything was stored
        const auto expected = keeps.product(columns), product = drops.product(columns);
        EXPECT_EQ(multiply_once(*product, context.stream()), multiply_once(*expected, context.stream()));
        EXPECT_EQ(drops.host_bytes(), 0);
        EXPECT_GT(keeps.host_bytes(), 0);
        other.plan->kernel = "coo_host";
        const std::string message = error_of(ErrorKind::usage, [&] { drops.product(other); });
        EXPECT_NE(message.find("host rows were dropped"), std::string::npos) << message;
        expect_product(*keeps.product(other), whole_matrix(specification),
                       multiply_once(*keeps.product(other), context.stream()));
      }
}

void converts_again_if_asked(const Case& c) {
  Context& context = context_of(c);
  const HostCsr a = whole_matrix("elasticity:n=6");
  const MatrixSource source = open_matrix("elasticity:n=6", world());
  LoadOptions load = options_for(c);
  load.plan.measure = false;  // for the same choice twice
  DistributedMatrix matrix(source, context, load);
  const auto first = matrix.product();
  const std::int64_t bytes = matrix.device_bytes();
  ProductOptions options;
  options.plan.emplace();
  options.plan->kernel = c.backend == BackendChoice::host ? "sell_host" : "sell";
  const auto second = matrix.product(options);  // needs a format that is not there
  EXPECT_GT(matrix.device_bytes(), bytes);
  EXPECT_EQ(second->row_plans()[0].storage().format, "sell");
  options = {};
  options.conversion = Conversion::if_faster;
  const std::int64_t both = matrix.device_bytes();
  const auto third = matrix.product(options);  // the format of the first is found again
  EXPECT_EQ(matrix.device_bytes(), both);
  for (const auto& product : {first.get(), second.get(), third.get()})
    expect_product(*product, a, multiply_once(*product, context.stream()));
}

void halves_have_no_single_product(const Case& c) {
  for (const ValueType type : {ValueType::f16, ValueType::bf16}) {
    const MatrixSource source = open_matrix("banded:n=50", world());
    LoadOptions options = options_for(c);
    options.type = type;
    options.right_hand_sides = 2;
    DistributedMatrix matrix(source, context_of(c), options);
    const std::string message = error_of(ErrorKind::usage, [&] { matrix.product(1); });
    EXPECT_NE(message.find("two or more"), std::string::npos) << message;
    const auto product = matrix.product(4);
    expect_product(*product, whole_matrix("banded:n=50"), multiply_once(*product, context_of(c).stream()));
  }
}

void takes_x_from_elsewhere(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  const HostCsr a = whole_matrix("elasticity:n=5");
  const MatrixSource source = open_matrix("elasticity:n=5", world());
  LoadOptions load = options_for(c);
  load.plan.reproducible = true;  // bits are compared
  DistributedMatrix matrix(source, context, load);
  for (const std::int64_t columns : {1, 4}) {
    const auto product = matrix.product(columns);
    const HostVector<double> expected = multiply_once(*product, stream);
    const Dense slot = product->x();
    const std::size_t value = size_of(slot.type);
    for (const auto& [gap, offset] : {std::pair{0, 0}, {3, 0}, {0, 1}}) {  // between rows, and of X in its memory
      const std::int64_t leading = columns == 1 ? 1 : columns + gap;
      const Buffer memory(context.device(), static_cast<std::size_t>(slot.rows * leading + offset) * value),
          y(context.device(), product->y_bytes());
      std::byte* const x = memory.as<std::byte>() + static_cast<std::size_t>(offset) * value;
      test::fill_x(*product, stream);
      copy_rows(static_cast<std::size_t>(columns) * value, slot.rows, slot.data, static_cast<std::size_t>(columns) * value,
                x, static_cast<std::size_t>(leading) * value, stream);
      fill_bytes(slot.data, 0, static_cast<std::size_t>(slot.rows * columns) * value, stream);
      Dense elsewhere = slot;
      elsewhere.data = x, elsewhere.leading = leading;
      product->multiply(1, elsewhere, 0, product->y_view(y.data()), stream);
      product->wait(stream);
      EXPECT_EQ(to_host(y.data(), matrix.local_rows() * columns, sum_type(c.type), stream), expected);
      EXPECT_EQ(product->exchange().x_may_lie_elsewhere(), world().size() == 1);
      const bool aligned = offset == 0 || c.backend == BackendChoice::host;
      const bool in_place = world().size() == 1 && leading == columns && aligned;
      EXPECT_EQ(to_host(slot.data, slot.rows * columns, slot.type, stream) ==
                    HostVector<double>(static_cast<std::size_t>(slot.rows * columns), 0),
                in_place || slot.rows == 0);
      if (matrix.local_rows() != slot.rows || sum_type(c.type) != slot.type) continue;
      product->multiply(1, elsewhere, 0, elsewhere, stream);  // Y takes the place of X
      product->wait(stream);
      const HostVector<double> over_x = to_host(x, slot.rows * leading, slot.type, stream);
      for (std::size_t i = 0; i < static_cast<std::size_t>(slot.rows); ++i)
        for (std::size_t j = 0; j < static_cast<std::size_t>(columns); ++j)
          ASSERT_EQ(over_x[i * static_cast<std::size_t>(leading) + j], expected[i * static_cast<std::size_t>(columns) + j]);
    }
  }
}

/// The same matrix in column-major order in memory of its own, `gap` entries between its columns.
Dense by_columns(const Dense& view, std::int64_t gap, Buffer& memory) {
  Dense other = view;
  other.order = DenseOrder::column_major, other.leading = view.rows + gap;
  memory = Buffer(view.device, static_cast<std::size_t>(other.leading * view.columns) * size_of(view.type));
  other.data = memory.data();
  return other;
}

/// X, Y or both by columns give the bits that rows give; gaps of Y stay.
void multiplies_column_major(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  LoadOptions load = options_for(c);
  load.right_hand_sides = 4;
  load.plan.reproducible = true;  // bits are compared
  DistributedMatrix matrix(open_matrix("elasticity:n=5", world()), context, load);
  for (const std::int64_t columns : {1, 4, 6}) {
    ProductOptions options;
    options.columns = columns, options.y_order = DenseOrder::column_major;
    options.column_block = columns == 6 && world().size() > 1 ? 3 : 0;
    const auto product = matrix.product(options);
    const Buffer y(context.device(), product->y_bytes());
    const Dense rows_of_y = product->y_view(y.data());
    Buffer memory_x, memory_y;
    test::fill_x(*product, stream);
    const Dense x = by_columns(product->x(), 3, memory_x), columns_of_y = by_columns(rows_of_y, 2, memory_y);
    copy_matrix(product->x(), x, stream);
    for (const double beta : {0.0, 0.5}) {
      const auto run = [&](const ConstDense& from, const Dense& to) {
        fill_vector(to.type, to.rows * columns, 3, y.data(), stream);
        fill_bytes(memory_y.data(), 0x40, memory_y.bytes(), stream);
        if (to.data != y.data()) copy_matrix(rows_of_y, to, stream);
        product->multiply(2, from, beta, to, stream);
        product->wait(stream);
        if (to.data != y.data()) copy_matrix(to, rows_of_y, stream);
        return to_host(y.data(), to.rows * columns, to.type, stream);
      };
      const HostVector<double> expected = run(product->x(), rows_of_y);
      EXPECT_EQ(run(x, rows_of_y), expected) << columns << " right-hand sides";
      EXPECT_EQ(run(product->x(), columns_of_y), expected) << columns << " right-hand sides";
      EXPECT_EQ(run(x, columns_of_y), expected) << columns << " right-hand sides";
    }
  }
}

SHARDMAT_MATRIX_TEST(Product, AnyWidth, multiplies_any_width_on_one_storage)
SHARDMAT_MATRIX_TEST(Product, OneStorage, stores_no_second_format_where_kernels_do)
SHARDMAT_MATRIX_TEST(Product, ReleasedRows, releases_rows_while_they_are_stored)
SHARDMAT_MATRIX_TEST(Product, OtherFormat, converts_again_if_asked)
SHARDMAT_MATRIX_TEST(Product, Halves, halves_have_no_single_product)
SHARDMAT_MATRIX_TEST(Product, OtherX, takes_x_from_elsewhere)
SHARDMAT_MATRIX_TEST(Product, ColumnMajor, multiplies_column_major)

TEST(Product, ColumnMajorMatricesThatDoNotFitAreRefused) {
  Context& context = context_of(kHost64);
  Stream& stream = context.stream();
  DistributedMatrix matrix(open_matrix("elasticity:n=4", world()), context, options_for(kHost64));
  const auto product = matrix.product(3);
  const Buffer y(context.device(), product->y_bytes());
  const Dense rows_of_y = product->y_view(y.data());
  Buffer memory;
  const Dense columns_of_y = by_columns(rows_of_y, 0, memory);
  const auto refused = [&](const ConstDense& from, const Dense& to) {
    return error_of(ErrorKind::usage, [&] { product->multiply(1, from, 0, to, stream); });
  };
  EXPECT_NE(refused(product->x(), columns_of_y).find("column_major_y"), std::string::npos);
  Dense wrong = product->x();
  wrong.order = DenseOrder::column_major, wrong.leading = wrong.rows;
  EXPECT_NE(refused(wrong, rows_of_y).find("X is column-major in the memory"), std::string::npos);
  wrong.leading = wrong.rows - 1;
  EXPECT_NE(refused(wrong, rows_of_y).find("its columns have"), std::string::npos);
  expect_product(*product, whole_matrix("elasticity:n=4"), multiply_once(*product, stream));
}

/// Products are destroyed in another order on each rank, and made again.
TEST(Product, DestructionIsNotCollective) {
  const MatrixSource source = open_matrix("elasticity:n=5", world());
  const HostCsr a = whole_matrix("elasticity:n=5");
  Context& context = context_of(kHost64);
  DistributedMatrix matrix(source, context, options_for(kHostHalo));
  for (int round = 0; round < 3; ++round) {
    auto one = matrix.product(1), two = matrix.product(2);
    (world().rank() % 2 == 0 ? one : two).reset();
    auto three = matrix.product(3);
    one.reset(), two.reset();
    expect_product(*three, a, multiply_once(*three, context.stream()));
  }
}

}  // namespace
}  // namespace shardmat
