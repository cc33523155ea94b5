// Products that also sum own·y (Plan::multiply_with_dot()).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "kernels/choose/registry.h"
#include "kernels/choose/tuner.h"
#include "tests/support/layout_zoo.h"
#include "tests/support/plan_check.h"

namespace shardmat {
namespace {

/// Rows of `nodes` nodes with `unknowns` each; every node is joined to those at distance 0, 1 and 11, and to one scattered
/// node if `scattered`. Every 37th node has no row entries.
HostCsr mesh(std::int64_t nodes, std::int64_t unknowns, bool scattered) {
  HostCsr m;
  m.rows = m.cols = nodes * unknowns;
  m.row_ptr = {0};
  for (std::int64_t node = 0; node < nodes; ++node) {
    std::set<std::int64_t> joined;
    if (node % 37 != 5 || !scattered)
      for (const std::int64_t distance : {-11, -1, 0, 1, 11})
        if (node + distance >= 0 && node + distance < nodes) joined.insert(node + distance);
    if (scattered && node % 37 != 5) joined.insert(node * 7919 % nodes);
    for (std::int64_t u = 0; u < unknowns; ++u) {
      for (const std::int64_t other : joined)
        for (std::int64_t v = 0; v < unknowns; ++v) {
          m.col_idx.push_back(other * unknowns + v);
          m.values.push_back(test::value_of(m.values.size()));
        }
      m.row_ptr.push_back(static_cast<std::int64_t>(m.values.size()));
    }
  }
  return m;
}

struct Sums {
  std::vector<double> y, parts;
};

/// Multiplies with a dot product. y has the bits of the product without one; the parts add up.
template <class T>
Sums check_dot(const Plan& plan, std::int64_t cols, Stream& stream) {
  const auto rows = static_cast<std::size_t>(plan.storage().rows), parts = static_cast<std::size_t>(plan.dot_parts());
  std::vector<T> x(static_cast<std::size_t>(cols)), own(rows);
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = static_cast<T>(test::value_of(7000 + j));
  for (std::size_t i = 0; i < rows; ++i) own[i] = static_cast<T>(test::value_of(100 + i));
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const test::Fenced<T> device_x(x, stream), device_own(own, stream), y(std::vector<T>(rows, nan), stream),
      plain(std::vector<T>(rows, nan), stream);
  const test::Fenced<double> device_parts(std::vector<double>(parts, nan), stream);
  plan.multiply_with_dot(device_x.data(), device_own.data(), y.data(), device_parts.data(), stream);
  plan.multiply(1, device_x.data(), 0, plain.data(), stream);
  const std::vector<T> ys = y.read(stream);
  EXPECT_EQ(ys, plain.read(stream));
  const std::vector<double> found = device_parts.read(stream);
  double sum = 0, expected = 0, magnitude = 0;
  for (const double part : found) sum += part;
  for (std::size_t i = 0; i < rows; ++i) {
    const double term = static_cast<double>(own[i]) * static_cast<double>(ys[i]);
    expected += term;
    magnitude += std::abs(term);
  }
  EXPECT_NEAR(sum, expected, 1e-13 * magnitude);
  return {std::vector<double>(ys.begin(), ys.end()), found};
}

/// All policies of a kernel on all layouts of its format. Returns the plans that had dot products.
int check_kernel(std::string_view name, const HostCsr& m, Stream& stream) {
  const Kernel& kernel = find_kernel(std::string(name), stream.device().backend);
  int plans = 0;
  for (const ValueType type : {ValueType::f32, ValueType::f64}) {
    ConversionInput input(m.view(), type, stream);
    for (const Policy& layout : test::layouts_to_try(find_format(kernel.format), input)) {
      SCOPED_TRACE(fmt::format("{} {} {}", name, layout.text(), shardmat::name(type)));
      if (find_format(kernel.format).bytes(input, layout) > largest_reasonable_bytes(input)) continue;
      const std::shared_ptr<Storage> storage = store(find_format(kernel.format), input, layout);
      if (!kernel.supports(*storage)) continue;
      for (const Policy& policy : kernel.policies(input.rows())) {
        SCOPED_TRACE(policy.text());
        const auto check = [&](const Plan& plan) {
          return dispatch(type, [&]<class Tag>(Tag) { return check_dot<typename Tag::type>(plan, m.cols, stream); });
        };
        const auto plan = make_plan(kernel, storage, policy, stream);
        if (plan->dot_parts() == 0) continue;
        ++plans;
        const Sums sums = check(*plan);
        for (int again = 0; again < 5; ++again) EXPECT_EQ(sums.parts, check(*plan).parts);
      }
    }
  }
  return plans;
}

TEST(GpuDot, SumsBesideTheProduct) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream({Backend::cuda, 0});
  for (const char* kernel : {"packed", "packed_stencil", "csr_balanced"}) {
    EXPECT_GT(check_kernel(kernel, mesh(16'001, 1, true), stream), 0);
    EXPECT_GT(check_kernel(kernel, mesh(301, 1, false), stream), 0);
  }
  for (const std::int64_t unknowns : {2, 3, 6})
    for (const char* kernel : {"packed", "csr_balanced"})  // rows that a thread adds alone, and rows of a warp
      EXPECT_GT(check_kernel(kernel, mesh(2'503, unknowns, true), stream), 0);
}

}  // namespace
}  // namespace shardmat
