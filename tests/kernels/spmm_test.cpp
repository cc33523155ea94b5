// One suite over every kernel for many right-hand sides: each policy, type, order and a range of counts, the whole zoo,
// against a plain f64 loop. Outputs are poisoned with NaN, and what lies between their rows or columns must not change.
#include "kernels/choose/spmm_registry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/choose/registry.h"
#include "kernels/choose/spmm_tuner.h"
#include "kernels/formats/packed_spmm.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/layout_zoo.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/plan_check.h"
#include "tests/support/stencil27.h"

namespace shardmat {
namespace {

/// A dense matrix on the host with some room between its rows or columns.
template <class T>
struct Dense {
  std::int64_t rows, columns, leading;
  DenseOrder order;
  std::vector<T> entries;

  Dense(std::int64_t rows_, std::int64_t columns_, DenseOrder order_, std::size_t seed)
      : rows(rows_),
        columns(columns_),
        leading((order_ == DenseOrder::row_major ? columns_ : rows_) + 3),
        order(order_),
        entries(static_cast<std::size_t>((order_ == DenseOrder::row_major ? rows_ : columns_) * leading)) {
    for (std::size_t k = 0; k < entries.size(); ++k) entries[k] = static_cast<T>(test::value_of(seed + k));
  }
  std::size_t place(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(order == DenseOrder::row_major ? i * leading + j : i + j * leading);
  }
};

/// `y` is `before` with alpha·A·x + beta·before in its entries and all else as it was.
template <class A, class T>
void expect_right(const HostCsr& m, test::Scalars s, const Dense<A>& x, const Dense<T>& before, const std::vector<T>& y,
                  ValueType type) {
  std::vector<T> rest = y;
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t j = 0; j < x.columns; ++j) {
      double sum = 0, absolute = 0;
      const auto begin = static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(i)]),
                 end = static_cast<std::size_t>(m.row_ptr[static_cast<std::size_t>(i) + 1]);
      for (std::size_t k = begin; k < end; ++k) {
        const double term =
            static_cast<double>(static_cast<A>(m.values[k])) * static_cast<double>(x.entries[x.place(m.col_idx[k], j)]);
        sum += term, absolute += std::abs(term);
      }
      const std::size_t place = before.place(i, j);
      const double old = s.beta == 0 ? 0 : s.beta * static_cast<double>(before.entries[place]);
      const double bound = 2 * unit_roundoff(type) *
                           ((static_cast<double>(end - begin) + 2) * std::abs(s.alpha) * absolute + 2 * std::abs(old));
      ASSERT_LE(std::abs(static_cast<double>(y[place]) - (s.alpha * sum + old)), bound) << "row " << i << ", column " << j;
      rest[place] = before.entries[place];
    }
  if (!rest.empty()) {
    EXPECT_EQ(std::memcmp(rest.data(), before.entries.data(), rest.size() * sizeof(T)), 0) << "written between its entries";
  }
}

template <class A, class T>
void check_plan(const SpmmPlan& plan, const HostCsr& m, ValueType type, Stream& stream) {
  const RightHandSides& rhs = plan.right_hand_sides();
  const Dense<A> x(m.cols, rhs.count, rhs.x, 1000);
  const test::Fenced<A> device_x(x.entries, stream);
  for (const test::Scalars s : {test::Scalars{-0.5, 0}, test::Scalars{0.25, -2}}) {
    Dense<T> before(m.rows, rhs.count, rhs.y, 5000);
    for (std::int64_t i = 0; i < m.rows && s.beta == 0; ++i)
      for (std::int64_t j = 0; j < rhs.count; ++j) before.entries[before.place(i, j)] = std::numeric_limits<T>::quiet_NaN();
    const test::Fenced<T> device_y(before.entries, stream), again(before.entries, stream);
    plan.multiply(s.alpha, device_x.data(), x.leading, s.beta, device_y.data(), before.leading, stream);
    const std::vector<T> y = device_y.read(stream);
    expect_right(m, s, x, before, y, type);
    if (!plan.reproducible() || y.empty()) continue;
    plan.multiply(s.alpha, device_x.data(), x.leading, s.beta, again.data(), before.leading, stream);
    EXPECT_EQ(std::memcmp(y.data(), again.read(stream).data(), y.size() * sizeof(T)), 0) << "not bit-identical";
  }
  EXPECT_EQ(device_x.read(stream), x.entries) << "X was changed";
}

constexpr DenseOrder kOrders[] = {DenseOrder::row_major, DenseOrder::column_major};

/// Calls body(right-hand sides) for every count and order; large counts in one pair of orders each. On the host, where
/// orders and widths do not depend on one another, for all counts row-major, and for two in the other orders.
template <class Body>
void for_each_count(Backend backend, const Body& body) {
  for (const std::int64_t count : {1, 2, 3, 5, 8, 17, 32, 33, 100, 257})
    for (const DenseOrder x : kOrders)
      for (const DenseOrder y : kOrders) {
        const bool by_rows = x == DenseOrder::row_major && y == x;
        if (backend == Backend::host ? count <= 100 && (by_rows || count == 33 || count == 1)
                                     : count < 100 || (x == y && by_rows == (count == 100)))
          body(RightHandSides{count, x, y});
      }
}

/// The format's layouts for a matrix, and every shape that packed rows may have.
std::vector<Policy> layouts_of(const Format& format, ConversionInput& input, std::int64_t cols) {
  std::vector<Policy> layouts = format.layouts(input);
  if (format.name == "packed" && cols >= 6)
    for (const Policy& shape : test::packed_shapes(layouts.front())) layouts.push_back(shape);
  return layouts;
}

void conform(const SpmmKernel& kernel) {
  Stream stream({kernel.backend, 0});
  int plans = 0;
  for (const test::NamedMatrix& zoo : test::matrix_zoo())
    for (const ValueType type : {ValueType::f32, ValueType::f64, ValueType::f16, ValueType::bf16}) {
      if (is_half(type) && kernel.format != "csr") continue;
      ConversionInput input(zoo.matrix.view(), type, stream);
      const Format& format = find_format(kernel.format);
      bool first = true;
      for (const Policy& layout : layouts_of(format, input, zoo.matrix.cols)) {
        std::shared_ptr<Storage> storage;
        try {
          storage = store(format, input, layout);
        } catch (const Error& e) {
          const bool pads = kernel.format.starts_with("rbp_ell");  // rows to the longest
          if ((first && !pads) || e.kind() != ErrorKind::resources) throw;
          continue;  // a shape that blows this matrix up
        }
        for_each_count(kernel.backend, [&](const RightHandSides& rhs) {
          if (!kernel.supports(*storage, rhs)) return;
          // Everything with the first layout; with the others, counts that have whole stretches, a rest and a copy.
          if (!first && (rhs.x != DenseOrder::row_major || rhs.y != rhs.x || (rhs.count != 5 && rhs.count != 100))) return;
          for (const Policy& policy : kernel.policies(*storage, rhs)) {
            SCOPED_TRACE(fmt::format("{} right-hand sides, orders {} {}, {} on {}: {} {}", rhs.count,
                                     static_cast<int>(rhs.x), static_cast<int>(rhs.y), name(type), zoo.name, layout.text(),
                                     policy.text()));
            const auto plan = make_spmm_plan(kernel, storage, rhs, policy, stream);
            const auto check = [&](const HostCsr& matrix) {
              dispatch_operands(type, [&](auto of_a, auto of_sum) {
                check_plan<typename decltype(of_a)::type, typename decltype(of_sum)::type>(*plan, matrix, type, stream);
              });
            };
            check(zoo.matrix);
            if (rhs.count == 8 && rhs.x == rhs.y && format.update != nullptr) {
              HostCsr changed = zoo.matrix;
              for (std::size_t k = 0; k < changed.values.size(); ++k) changed.values[k] = test::value_of(77 + k);
              update_values(plan->storage(), changed.view(), stream);
              check(changed);
              update_values(plan->storage(), zoo.matrix.view(), stream);
            }
            ++plans;
          }
        });
        first = false;
      }
    }
  EXPECT_GT(plans, 0) << "took no matrix of the zoo";
}

std::vector<std::string> names(Backend backend) {
  std::vector<std::string> all;
  for (const SpmmKernel& kernel : spmm_kernels())
    if (kernel.backend == backend) all.emplace_back(kernel.name);
  return all;
}
std::string name_of(const testing::TestParamInfo<std::string>& info) { return info.param; }

class HostSpmm : public testing::TestWithParam<std::string> {};
TEST_P(HostSpmm, Conforms) { conform(find_spmm_kernel(GetParam(), Backend::host)); }
INSTANTIATE_TEST_SUITE_P(, HostSpmm, testing::ValuesIn(names(Backend::host)), name_of);

/// With the lower instruction sets.
class HostSpmmOfLowerIsa : public testing::TestWithParam<std::string> {};
TEST_P(HostSpmmOfLowerIsa, Conforms) {
  for (const Isa isa : test::instruction_sets()) {
    if (isa == instruction_set()) continue;
    SCOPED_TRACE(std::string(name(isa)));
    const IsaScope scope(isa);
    conform(find_spmm_kernel(GetParam(), Backend::host));
  }
}
INSTANTIATE_TEST_SUITE_P(, HostSpmmOfLowerIsa, testing::ValuesIn(names(Backend::host)), name_of);

/// Column j of a product with several right-hand sides has the bits of the product with one, as the kernel of the same name
/// gives it.
template <class T>
void expect_bits_of_single_products(const SpmmKernel& kernel, const std::shared_ptr<Storage>& storage,
                                    const RightHandSides& rhs, Stream& stream) {
  const auto plan = make_spmm_plan(kernel, storage, rhs, {}, stream);
  const auto of_format = std::find_if(kernels().begin(), kernels().end(), [&](const Kernel& one) {
    return one.backend == Backend::host && one.format == kernel.format && (one.automatic || one.name == kernel.name);
  });
  const auto single = of_format->make(storage, {}, stream);
  const std::int64_t rows = storage->rows, cols = storage->cols;
  const Dense<T> x(cols, rhs.count, rhs.x, 1000), before(rows, rhs.count, rhs.y, 5000);
  Dense<T> y = before;
  plan->multiply(0.25, x.entries.data(), x.leading, -2, y.entries.data(), y.leading, stream);
  std::vector<T> x_j(static_cast<std::size_t>(cols)), y_j(static_cast<std::size_t>(rows));
  for (std::int64_t j = 0; j < rhs.count; ++j) {
    for (std::int64_t i = 0; i < cols; ++i) x_j[static_cast<std::size_t>(i)] = x.entries[x.place(i, j)];
    for (std::int64_t i = 0; i < rows; ++i) y_j[static_cast<std::size_t>(i)] = before.entries[before.place(i, j)];
    single->multiply(0.25, x_j.data(), -2, y_j.data(), stream);
    for (std::int64_t i = 0; i < rows; ++i)
      ASSERT_EQ(y.entries[y.place(i, j)], y_j[static_cast<std::size_t>(i)]) << "row " << i << ", column " << j;
  }
}

TEST_P(HostSpmm, ColumnsHaveTheBitsOfSingleProducts) {
  const SpmmKernel& kernel = find_spmm_kernel(GetParam(), Backend::host);
  const Format& format = find_format(kernel.format);
  Stream stream({Backend::host, 0});
  for (const Isa isa : test::instruction_sets())
    for (const test::NamedMatrix& zoo : test::matrix_zoo())
      for (const ValueType type : {ValueType::f32, ValueType::f64}) {
        const IsaScope scope(isa);
        ConversionInput input(zoo.matrix.view(), type, stream);
        for (const Policy& layout : format.layouts(input)) {
          if (format.bytes(input, layout) > largest_reasonable_bytes(input)) continue;
          const auto storage = store(format, input, layout);
          for (const std::int64_t count : {2, 3, 4, 6, 7, 33}) {
            if (!kernel.supports(*storage, {count})) continue;
            SCOPED_TRACE(
                fmt::format("{}, {} right-hand sides on {}, {} {}", name(isa), count, zoo.name, name(type), layout.text()));
            RightHandSides rhs{count};
            if (count == 3 || count == 7) rhs.x = DenseOrder::column_major;
            if (count == 4 || count == 7) rhs.y = DenseOrder::column_major;
            if (type == ValueType::f32) expect_bits_of_single_products<float>(kernel, storage, rhs, stream);
            else expect_bits_of_single_products<double>(kernel, storage, rhs, stream);
          }
        }
      }
}

class GpuSpmm : public testing::TestWithParam<std::string> {};
TEST_P(GpuSpmm, Conforms) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  conform(find_spmm_kernel(GetParam(), Backend::cuda));
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuSpmm);
INSTANTIATE_TEST_SUITE_P(, GpuSpmm, testing::ValuesIn(names(Backend::cuda)), name_of);

/// Enough nonzeros for every lane of a large GPU to take several tasks: a long row, empty rows, popular columns.
HostCsr many_nonzeros() {
  HostCsr m;
  m.rows = 300'000, m.cols = 50'000;
  m.row_ptr.push_back(0);
  for (std::int64_t i = 0; i < m.rows; ++i) {
    const std::int64_t length = i == 1000 ? 40'000 : i % 5 == 0 ? 0 : 1 + (i * 7919) % 23;
    const auto begin = m.col_idx.size();
    for (std::int64_t k = 0; k < length; ++k) {
      const std::int64_t spread = (i * 131 + k * 8191) % m.cols;
      m.col_idx.push_back(i == 1000 ? k : k == 0 ? spread % 100 : spread);
    }
    const auto row = m.col_idx.begin() + static_cast<std::ptrdiff_t>(begin);
    std::sort(row, m.col_idx.end());
    m.col_idx.erase(std::unique(row, m.col_idx.end()), m.col_idx.end());
    while (m.values.size() < m.col_idx.size()) m.values.push_back(test::value_of(m.values.size()));
    m.row_ptr.push_back(std::ssize(m.values));
  }
  return m;
}

TEST(GpuSpmmBalanced, ManyTasksALane) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream({Backend::cuda, 0});
  const HostCsr m = many_nonzeros();
  ASSERT_GT(m.nnz(), 2'500'000);
  const SpmmKernel& kernel = find_spmm_kernel("csr_balanced", Backend::cuda);
  for (const ValueType type : {ValueType::f64, ValueType::f16}) {
    ConversionInput input(m.view(), type, stream);
    const auto storage = store(find_format("csr"), input, {});
    for (const std::int64_t count : {2, 5, 40})
      for (const char* changes : {"task=32,exact=0", "task=512,exact=0", "task=64,hub_kb=160"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", name(type), count, changes));
        const Policy policy = kernel.policies(*storage, {count}).front().with(changes);
        const auto plan = make_spmm_plan(kernel, storage, {count}, policy, stream);
        dispatch_operands(type, [&](auto of_a, auto of_sum) {
          check_plan<typename decltype(of_a)::type, typename decltype(of_sum)::type>(*plan, m, type, stream);
        });
      }
  }
}

TEST(GpuSpmmPacked, AnyNumberOfSlicesABlock) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream({Backend::cuda, 0});
  const HostCsr m = many_nonzeros();
  const SpmmKernel& kernel = find_spmm_kernel("packed", Backend::cuda);
  const Format& format = find_format("packed");
  ConversionInput input(m.view(), ValueType::f64, stream);
  for (const char* layout : {"block=1,lanes=1,shift=0,window=1024", "block=3,lanes=1,shift=0,window=1024"}) {
    const auto storage = store(format, input, format.layouts(input).front().with(layout));
    const auto plan_of = [&](const char* changes) {
      return make_spmm_plan(kernel, storage, {33}, kernel.policies(*storage, {33}).front().with(changes), stream);
    };
    EXPECT_THROW(plan_of("slices=0"), Error);
    for (const char* changes : {"slices=1", "slices=3", "slices=1000"}) {
      SCOPED_TRACE(fmt::format("{} {}", layout, changes));
      check_plan<double, double>(*plan_of(changes), m, ValueType::f64, stream);
    }
  }
}

std::shared_ptr<Storage> packed_rows(const HostCsr& m, Stream& stream) {
  ConversionInput input(m.view(), ValueType::f64, stream);
  const Format& format = find_format("packed");
  return store(format, input, format.layouts(input).front().with("block=1,lanes=1,shift=0,window=1024"));
}

/// Lines of 14 interior points end at any place of four rows that lanes take together.
TEST(GpuSpmmPacked, GridLinesEndInSlices) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream({Backend::cuda, 0});
  const HostCsr m = test::stencil27(16, 16);
  const SpmmKernel& kernel = find_spmm_kernel("packed_stencil", Backend::cuda);
  const auto storage = packed_rows(m, stream);
  for (const char* shape : {"lanes=1,passes=1", "lanes=2,passes=1", "lanes=4,passes=1", "lanes=4,passes=2",
                            "lanes=8,passes=1", "lanes=8,passes=2", "lanes=16,passes=2"})
    for (const char* blocks : {"cluster=0,stay=1", "cluster=4,stay=0"}) {
      SCOPED_TRACE(fmt::format("{} {}", shape, blocks));
      const Policy policy = kernel.policies(*storage, {130}).front().with(shape).with(blocks);
      check_plan<double, double>(*make_spmm_plan(kernel, storage, {130}, policy, stream), m, ValueType::f64, stream);
    }
}

TEST(Spmm, AddsHalvesInSingle) {
  Stream stream({Backend::host, 0});
  HostCsr m{1, 4096, {0, 4096}, {}, {}};
  for (std::int64_t j = 0; j < m.cols; ++j) m.col_idx.push_back(j), m.values.push_back(1);
  ConversionInput input(m.view(), ValueType::f16, stream);
  const std::vector<F16> x(2 * 4096, F16(1.0));
  std::vector<float> y(2);
  make_spmm_plan(find_spmm_kernel("csr_host", Backend::host), store(find_format("csr"), input, {}), {2}, {}, stream)
      ->multiply(1, x.data(), 2, 0, y.data(), 2, stream);
  EXPECT_EQ(y, (std::vector<float>{4096, 4096})) << "f16 ends counting at 2048";
}

TEST(Spmm, RefusesValuesBeyondHalves) {
  Stream stream({Backend::host, 0});
  const HostCsr m{1, 2, {0, 2}, {0, 1}, {1.0, 1e5}};
  ConversionInput f16(m.view(), ValueType::f16, stream), bf16(m.view(), ValueType::bf16, stream);
  EXPECT_NO_THROW(store(find_format("csr"), bf16, {}));
  try {
    store(find_format("csr"), f16, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_NE(std::string(e.what()).find("entry 2 of the matrix's values is 100000"), std::string::npos) << e.what();
  }
  EXPECT_THROW(store(find_format("sell"), bf16, {}), Error);
  const auto advice = [](ValueType type, double value) {
    try {
      require_in_range(type, std::vector<double>{1, -value, value}, "x");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("fits");
  };
  EXPECT_EQ(advice(ValueType::f16, 65519.9), "fits");
  EXPECT_NE(advice(ValueType::f16, 65520).find("entry 2 of x is -65520"), std::string::npos);
  EXPECT_NE(advice(ValueType::f16, 1e6).find("use bf16 or f32"), std::string::npos);
  EXPECT_NE(advice(ValueType::f16, 1e39).find("use f64"), std::string::npos);
  EXPECT_EQ(advice(ValueType::bf16, 3.39e38), "fits");
  EXPECT_NE(advice(ValueType::bf16, 3.4e38).find("use f32"), std::string::npos);
  EXPECT_NE(advice(ValueType::bf16, 1e39).find("use f64"), std::string::npos);
  EXPECT_EQ(advice(ValueType::f32, 3.4028235e38), "fits");  // the largest
  EXPECT_NE(advice(ValueType::f32, 3.4029e38).find("use f64"), std::string::npos);
  EXPECT_EQ(advice(ValueType::f64, 1e300), "fits");
  EXPECT_EQ(advice(ValueType::bf16, std::numeric_limits<double>::infinity()), "fits");
}

TEST(Spmm, RefusesWhatItCannotDo) {
  Stream stream({Backend::host, 0});
  const HostCsr m{2, 3, {0, 1, 2}, {0, 2}, {1.0, 2.0}};
  ConversionInput input(m.view(), ValueType::f64, stream);
  const auto storage = store(find_format("csr"), input, {});
  const SpmmKernel& kernel = find_spmm_kernel("csr_host", Backend::host);
  EXPECT_THROW(make_spmm_plan(kernel, storage, {0}, {}, stream), Error);
  std::vector<double> x(12, 1.0), y(8, 0.0);
  const auto rows = make_spmm_plan(kernel, storage, {4}, {}, stream);
  EXPECT_THROW(rows->multiply(1, x.data(), 3, 0, y.data(), 4, stream), Error) << "rows of X overlap";
  EXPECT_THROW(rows->multiply(1, x.data(), 4, 0, y.data(), 3, stream), Error) << "rows of Y overlap";
  const auto columns = make_spmm_plan(kernel, storage, {4, DenseOrder::column_major, DenseOrder::column_major}, {}, stream);
  EXPECT_THROW(columns->multiply(1, x.data(), 2, 0, y.data(), 2, stream), Error) << "columns of X overlap";
  columns->multiply(1, x.data(), 3, 0, y.data(), 2, stream);
  EXPECT_EQ(y, (std::vector<double>{1, 2, 1, 2, 1, 2, 1, 2}));
  try {
    find_spmm_kernel("csr_hots", Backend::host);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'csr_host'"), std::string::npos) << e.what();
  }
}

/// One column has no order, so that the host copies none.
TEST(Spmm, CopiesColumnsOnlyWhereThereAreSeveral) {
  Stream stream({Backend::host, 0});
  const HostCsr m{2, 3, {0, 1, 2}, {0, 2}, {1.0, 2.0}};
  ConversionInput input(m.view(), ValueType::f64, stream);
  const auto storage = store(find_format("csr"), input, {});
  const auto bytes = [&](const RightHandSides& rhs) {
    return make_spmm_plan(find_spmm_kernel("csr_host", Backend::host), storage, rhs, {}, stream)->extra_bytes();
  };
  constexpr DenseOrder kRows = DenseOrder::row_major, kColumns = DenseOrder::column_major;
  for (const DenseOrder x : kOrders)
    for (const DenseOrder y : kOrders) EXPECT_EQ(bytes({1, x, y}), bytes({1}));
  EXPECT_EQ(bytes({2, kColumns, kRows}), bytes({2}) + 2 * 3 * 8);
  EXPECT_EQ(bytes({2, kRows, kColumns}), bytes({2}) + 2 * 2 * 8);
}

TEST(SpmmTuner, TakesTheKernelAndSaysWhatIsWrong) {
  Stream stream({Backend::host, 0});
  const HostCsr m{2, 3, {0, 1, 2}, {0, 2}, {1.0, 2.0}};
  ConversionInput input(m.view(), ValueType::f64, stream);
  SpmmTuner tuner(input);
  const ChosenSpmmPlan chosen = tuner.choose({4}, {});
  EXPECT_EQ(chosen.plan->kernel, "csr_host");
  EXPECT_EQ(chosen.decision, Decision::only);
  EXPECT_EQ(&tuner.choose({2}, {}).plan->storage(), &chosen.plan->storage()) << "stored twice";
  const auto says = [&](std::int64_t count, const std::string& kernel, const std::string& policy, const std::string& what) {
    SpmmRequest request;
    request.kernel = kernel, request.policy = policy;
    try {
      tuner.choose({count}, request);
      ADD_FAILURE() << "no error that says " << what;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
    }
  };
  says(0, "auto", "", "there must be 1 to");
  says(4, "csr_hots", "", "did you mean 'csr_host'");
  says(4, "auto", "lanes=4", "name the kernel");
  says(4, "csr_host", "lanes=4", "lanes");
}

TEST(ClusteredSlices, HoldEverySliceOnceAndNeedFewerColumns) {
  Stream stream({Backend::host, 0});
  const HostCsr m = test::stencil27(130, 12);  // four slices a line
  const auto storage = packed_rows(m, stream);
  const auto& packed = static_cast<const PackedStorage&>(*storage);
  constexpr int kCluster = 8;
  std::vector<std::int32_t> natural(static_cast<std::size_t>(packed.slices));
  std::iota(natural.begin(), natural.end(), 0);
  std::vector<std::int32_t> clustered = clustered_slices(packed, kCluster, 0, stream);

  const auto* slices = packed.slice.as<PackedSlice>();
  const auto columns_needed = [&](const std::vector<std::int32_t>& order) {
    std::int64_t sum = 0;
    for (std::size_t first = 0; first < order.size(); first += kCluster) {
      std::set<std::int64_t> columns;
      for (std::size_t s = first; s < std::min(order.size(), first + kCluster); ++s) {
        const PackedSlice& slice = slices[order[s]];
        for (std::uint32_t g = 0; g < slice.real; ++g) {
          const std::size_t row = slice.consecutive ? slice.groups + g : packed.order.as<std::uint32_t>()[slice.groups + g];
          for (std::int64_t k = m.row_ptr[row]; k < m.row_ptr[row + 1]; ++k)
            columns.insert(m.col_idx[static_cast<std::size_t>(k)]);
        }
      }
      sum += std::ssize(columns);
    }
    return static_cast<double>(sum);
  };
  EXPECT_LT(columns_needed(clustered), 0.75 * columns_needed(natural));
  EXPECT_EQ(clustered, clustered_slices(packed, kCluster, 0, stream)) << "not the same every time";
  std::sort(clustered.begin(), clustered.end());
  EXPECT_EQ(clustered, natural);
}

TEST(ClusteredSlices, ManyOfThemHoldEverySliceOnceAndClustersStay) {
  Stream stream({Backend::host, 0});
  const auto storage = packed_rows(test::stencil27(64, 52), stream);  // two slices a line
  const auto& packed = static_cast<const PackedStorage&>(*storage);
  ASSERT_GT(packed.slices, 2 * 2048);
  constexpr std::int64_t kReach = 2 * 53 * 64;  // of a row of the grid
  std::vector<std::int32_t> slices = clustered_slices(packed, 2, kReach / 2, stream);
  std::int64_t near = 0;
  for (std::size_t i = 0; i + 1 < slices.size(); i += 2) near += std::abs(slices[i] - slices[i + 1]) <= 2 ? 1 : 0;
  EXPECT_GT(near, packed.slices / 2 * 8 / 10) << "two slices of a line or of neighbouring ones";
  const auto parts = [](const std::vector<std::int32_t>& order) {  // within which clusters ascend
    std::int64_t count = 1;
    for (std::size_t i = 2; i + 1 < order.size(); i += 2) count += order[i] < order[i - 2] ? 1 : 0;
    return count;
  };
  EXPECT_EQ(parts(slices), 2);
  EXPECT_EQ(parts(clustered_slices(packed, 2, 2 * kReach, stream)), 1);
  std::sort(slices.begin(), slices.end());
  for (std::size_t i = 0; i < slices.size(); ++i) ASSERT_EQ(slices[i], static_cast<std::int32_t>(i));
}

}  // namespace
}  // namespace shardmat
