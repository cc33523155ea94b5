// Products with the transpose: of every format, in every layout, of the whole zoo, against a plain f64 loop. Outputs are
// poisoned with NaN and lie between guard words.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/choose/registry.h"
#include "kernels/choose/transpose_list.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/layout_zoo.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/plan_check.h"

namespace shardmat {
namespace {

using test::Fenced;
using test::Scalars;

struct Shape {
  std::int64_t columns, ldx, ldy;
};

/// X or Y: `rows` rows, `ld` apart; gaps are of the same kind as entries.
template <class T>
std::vector<T> dense(std::int64_t rows, std::int64_t ld, std::uint64_t seed) {
  std::vector<T> all(static_cast<std::size_t>(rows * ld));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<T>(test::value_of(seed + i));
  return all;
}

template <class T>
void expect_transposed(const HostCsr& m, const Shape& s, Scalars by, const std::vector<T>& x, const std::vector<T>& y0,
                       const std::vector<T>& y, ValueType type) {
  const auto entries = static_cast<std::size_t>(m.cols * s.columns);
  std::vector<double> sum(entries, 0.0), absolute(entries, 0.0);
  std::vector<double> terms(static_cast<std::size_t>(m.cols), 0.0);
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t k = m.row_ptr[static_cast<std::size_t>(i)]; k < m.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
      const std::int64_t column = m.col_idx[static_cast<std::size_t>(k)];
      const auto value = static_cast<double>(static_cast<T>(m.values[static_cast<std::size_t>(k)]));
      terms[static_cast<std::size_t>(column)] += 1;
      for (std::int64_t j = 0; j < s.columns; ++j) {
        const double term = value * static_cast<double>(x[static_cast<std::size_t>(i * s.ldx + j)]);
        sum[static_cast<std::size_t>(column * s.columns + j)] += term;
        absolute[static_cast<std::size_t>(column * s.columns + j)] += std::abs(term);
      }
    }
  for (std::int64_t c = 0; c < m.cols; ++c)
    for (std::int64_t j = 0; j < s.ldy; ++j) {
      const auto at = static_cast<std::size_t>(c * s.ldy + j);
      if (j >= s.columns) {
        ASSERT_EQ(std::memcmp(&y[at], &y0[at], sizeof(T)), 0) << "a gap was written behind row " << c;
        continue;
      }
      const auto of = static_cast<std::size_t>(c * s.columns + j);
      const double old = by.beta == 0 ? 0 : by.beta * static_cast<double>(y0[at]);
      const double bound = 2 * unit_roundoff(type) *
                           ((terms[static_cast<std::size_t>(c)] + 3) * std::abs(by.alpha) * absolute[of] +
                            2 * std::abs(old) + terms[static_cast<std::size_t>(c)] * std::abs(old));
      ASSERT_LE(std::abs(static_cast<double>(y[at]) - (by.alpha * sum[of] + old)), bound) << "column " << c << ", " << j;
    }
}

/// Makes a plan with make(shape) for several widths and checks it; right-hand side j has the bits of a product of it alone.
template <class T, class Make>
void check(const HostCsr& m, ValueType type, Stream& stream, const Make& make) {
  for (const Shape s : {Shape{1, 1, 1}, Shape{8, 9, 8}, Shape{21, 21, 23}}) {
    SCOPED_TRACE(fmt::format("{} right-hand sides", s.columns));
    const auto plan = make(TransposeShape{m.cols, s.columns});
    const auto one = make(TransposeShape{m.cols, 1});
    const std::vector<T> x = dense<T>(m.rows, s.ldx, 7000);
    const Fenced<T> device_x(x, stream);
    for (const Scalars by : {Scalars{1, 0}, Scalars{0.25, -2}}) {
      std::vector<T> y0 = dense<T>(m.cols, s.ldy, 3000);
      if (by.beta == 0) std::fill(y0.begin(), y0.end(), std::numeric_limits<T>::quiet_NaN());
      const Fenced<T> first(y0, stream), again(y0, stream);
      plan->multiply(by.alpha, device_x.data(), s.ldx, by.beta, first.data(), s.ldy, stream);
      const std::vector<T> y = first.read(stream);
      expect_transposed(m, s, by, x, y0, y, type);
      plan->multiply(by.alpha, device_x.data(), s.ldx, by.beta, again.data(), s.ldy, stream);
      const std::vector<T> repeated = again.read(stream);
      if (!y.empty()) {
        EXPECT_EQ(std::memcmp(y.data(), repeated.data(), y.size() * sizeof(T)), 0) << "other bits the second time";
      }
      const std::int64_t j = s.columns - 1;
      std::vector<T> xj, yj0;
      for (std::int64_t i = 0; i < m.rows; ++i) xj.push_back(x[static_cast<std::size_t>(i * s.ldx + j)]);
      for (std::int64_t c = 0; c < m.cols; ++c) yj0.push_back(y0[static_cast<std::size_t>(c * s.ldy + j)]);
      const Fenced<T> device_xj(xj, stream), device_yj(yj0, stream);
      one->multiply(by.alpha, device_xj.data(), 1, by.beta, device_yj.data(), 1, stream);
      const std::vector<T> yj = device_yj.read(stream);
      for (std::size_t c = 0; c < yj.size(); ++c)
        ASSERT_EQ(yj[c], y[c * static_cast<std::size_t>(s.ldy) + static_cast<std::size_t>(j)]) << "column " << c;
    }
    EXPECT_EQ(device_x.read(stream), x) << "x was changed";
  }
}

/// A plan that was made before the values of the storage changed.
template <class T>
void check_values(const TransposePlan& plan, const HostCsr& m, ValueType type, Stream& stream) {
  const std::vector<T> x = dense<T>(m.rows, 1, 11'000), nan(static_cast<std::size_t>(m.cols), std::nan(""));
  const Fenced<T> device_x(x, stream), device_y(nan, stream);
  plan.multiply(1, device_x.data(), 1, 0, device_y.data(), 1, stream);
  expect_transposed(m, Shape{1, 1, 1}, Scalars{1, 0}, x, nan, device_y.read(stream), type);
}

HostCsr with_new_values(HostCsr m) {
  for (std::size_t k = 0; k < m.values.size(); ++k) m.values[k] = test::value_of(90'000 + k);
  return m;
}

template <class T>
void check_storage(const HostCsr& m, const std::shared_ptr<Storage>& storage, ConversionInput& input) {
  Stream& stream = input.stream();
  const HostCsr changed = with_new_values(m);
  const auto with_both_values = [&](const auto& make) {
    if (find_format(storage->format).update == nullptr) return check<T>(m, input.type(), stream, make);
    const auto plan = make(TransposeShape{m.cols, 1});
    update_values(*storage, changed.view(), stream);
    check<T>(changed, input.type(), stream, make);
    update_values(*storage, m.view(), stream);
    check_values<T>(*plan, m, input.type(), stream);
  };
  if (transposes_as_stored(*storage)) {
    SCOPED_TRACE("as stored");
    with_both_values([&](const TransposeShape& shape) { return make_transpose_plan(storage, shape); });
  }
  if (find_format(storage->format).update == nullptr) {
    EXPECT_THROW(ColumnEntries(*storage, input), Error);
    return;
  }
  SCOPED_TRACE("by a map");
  const auto entries = std::make_shared<const ColumnEntries>(*storage, input);
  with_both_values([&](const TransposeShape& shape) { return make_transpose_plan(storage, entries, shape); });
}

/// One format of a backend in all its layouts, on all matrices.
void check_format(const Format& format, Backend backend) {
  Stream stream({backend, 0});
  const bool every_layout = format.name == "packed" || format.name == "bcsr";
  for (const test::NamedMatrix& zoo : test::matrix_zoo())
    for (const ValueType type : {ValueType::f32, ValueType::f64}) {
      const HostCsr m = zoo.name == "power law" ? test::with_rows_rotated(zoo.matrix) : zoo.matrix;
      ConversionInput input(m.view(), type, stream);
      std::vector<Policy> layouts = test::layouts_to_try(format, input);
      if (!every_layout) layouts.resize(1);  // the map knows no layouts
      if (format.name == "packed" && m.cols >= 6)
        for (const Policy& shape : test::packed_shapes(layouts.front())) layouts.push_back(shape);
      for (const Policy& layout : layouts) {
        if (format.bytes(input, layout) > largest_reasonable_bytes(input)) continue;
        SCOPED_TRACE(fmt::format("{} {} on {}", layout.text(), name(type), zoo.name));
        const auto storage = store(format, input, layout);
        type == ValueType::f32 ? check_storage<float>(m, storage, input) : check_storage<double>(m, storage, input);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
}

std::vector<std::string> names_of_formats(Backend backend) {
  std::vector<std::string> names;
  for (const Format& format : formats())
    if (format.entries == StoredEntries::all && std::any_of(kernels().begin(), kernels().end(), [&](const Kernel& kernel) {
          return kernel.backend == backend && kernel.format == format.name;
        }))
      names.emplace_back(format.name);
  return names;
}
std::string name_of(const testing::TestParamInfo<std::string>& info) { return info.param; }

class Transpose : public testing::TestWithParam<std::string> {};
TEST_P(Transpose, OfEveryFormat) {
  const bool as_stored = GetParam() == "csr" || GetParam() == "packed" || GetParam() == "bcsr";
  for (const Isa isa : test::instruction_sets()) {
    if (!as_stored && isa != instruction_set()) continue;
    SCOPED_TRACE(std::string(name(isa)));
    const IsaScope scope(isa);
    check_format(find_format(GetParam()), Backend::host);
  }
}
INSTANTIATE_TEST_SUITE_P(, Transpose, testing::ValuesIn(names_of_formats(Backend::host)), name_of);

class GpuTranspose : public testing::TestWithParam<std::string> {};
TEST_P(GpuTranspose, OfEveryFormat) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_format(find_format(GetParam()), Backend::cuda);
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuTranspose);
INSTANTIATE_TEST_SUITE_P(, GpuTranspose, testing::ValuesIn(names_of_formats(Backend::cuda)), name_of);

/// Enough rows for several threads, whose windows overlap: a band whose rows also have far entries.
HostCsr band(std::int64_t rows, std::int64_t cols, bool far) {
  HostCsr m;
  m.rows = rows, m.cols = cols;
  std::uint64_t counter = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = i - 3; c < i + 4; ++c)
      if (c >= 0 && c < cols && (i + c) % 5 != 0) m.col_idx.push_back(c), m.values.push_back(test::value_of(++counter));
    const std::int64_t jump = i + 100 + (i * 7919) % 4000;
    if (far && jump < cols) m.col_idx.push_back(jump), m.values.push_back(test::value_of(++counter));
    m.row_ptr.push_back(std::ssize(m.col_idx));
  }
  return m;
}

/// Threads that sleep between products are not woken for matrices as small as those here.
class ThreadsThatWait {
 public:
  ThreadsThatWait() {
    if (const char* policy = std::getenv(kName)) old_ = policy;
    ::setenv(kName, "active", 1);
  }
  ~ThreadsThatWait() { old_ ? ::setenv(kName, old_->c_str(), 1) : ::unsetenv(kName); }
  ThreadsThatWait(const ThreadsThatWait&) = delete;
  ThreadsThatWait& operator=(const ThreadsThatWait&) = delete;

 private:
  static constexpr const char* kName = "OMP_WAIT_POLICY";
  std::optional<std::string> old_;
};

TEST(TransposeThreads, AddTheirWindowsInOrder) {
  const ThreadsThatWait waiting;
  Stream stream({});
  const ThreadCount threads(4);
  for (const bool far : {false, true}) {
    const HostCsr m = band(20'000, 19'500, far);
    for (const char* name : {"csr", "packed", "bcsr"}) {
      ConversionInput input(m.view(), ValueType::f64, stream);
      const Format& format = find_format(name);
      const auto storage = store(format, input, format.layouts(input).front());
      if (!transposes_as_stored(*storage)) continue;
      SCOPED_TRACE(name);
      EXPECT_GT(make_transpose_plan(storage, TransposeShape{m.cols, 1})->extra_bytes(), 0) << "one range";
      check<double>(m, ValueType::f64, stream,
                    [&](const TransposeShape& shape) { return make_transpose_plan(storage, shape); });
    }
  }
}

TEST(TransposeRefuses, Halves) {
  Stream stream({});
  const HostCsr m = band(10, 10, false);
  ConversionInput input(m.view(), ValueType::f16, stream);
  const auto storage = store(find_format("csr"), input, find_format("csr").layouts(input).front());
  EXPECT_THROW(make_transpose_plan(storage, TransposeShape{m.cols, 2}), Error);
}

}  // namespace
}  // namespace shardmat
