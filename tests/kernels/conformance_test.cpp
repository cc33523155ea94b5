// One suite over every registered kernel: each policy, each type, the whole zoo, against a plain f64 loop. Outputs are
// poisoned with NaN and fenced with guard words, so a row nobody writes and a write outside fail.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/choose/registry.h"
#include "kernels/choose/tuner.h"
#include "kernels/formats/csr.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/layout_zoo.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/plan_check.h"

namespace shardmat {
namespace {

/// The same pattern, other values.
HostCsr with_new_values(HostCsr m) {
  for (std::size_t k = 0; k < m.values.size(); ++k) m.values[k] = test::value_of(90'000 + k);
  return m;
}

/// Checks every policy of a kernel on one stored matrix, then the same plan with new values. Returns the plans made.
int check_kernel(const Kernel& kernel, const std::shared_ptr<Storage>& storage, const HostCsr& m, ConversionInput& input) {
  const bool takes_new_values = find_format(kernel.format).update != nullptr;
  int plans = 0;
  const HostCsr changed = with_new_values(m);
  for (const Policy& policy : kernel.policies(input.rows())) {
    SCOPED_TRACE(policy.text());
    const auto plan = make_plan(kernel, storage, policy, input.stream());
    dispatch(input.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      test::check_plan<T>(*plan, m, input.type(), input.stream());
      if (plans == 0 && takes_new_values) {
        update_values(plan->storage(), changed.view(), input.stream());
        test::check_plan<T>(*plan, changed, input.type(), input.stream());
        update_values(plan->storage(), m.view(), input.stream());
      }
    });
    ++plans;
  }
  return plans;
}

std::vector<test::NamedMatrix> matrices() {
  std::vector<test::NamedMatrix> all = test::matrix_zoo();
  for (const test::NamedMatrix& zoo : all) validate(zoo.matrix.view());
  for (const std::string_view name : {"power law", "banded", "node blocks"}) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const test::NamedMatrix& one) { return one.name == name; });
    all.push_back({found->name + ", rows rotated", test::with_rows_rotated(found->matrix)});
  }
  return all;
}

/// Every kernel of a backend that works on a format, in every layout, on every matrix; on the host with the instruction set
/// of the caller.
void conform(const Format& format, Backend backend) {
  Stream stream({backend, 0});
  std::map<std::string_view, int> plans;
  for (const test::NamedMatrix& zoo : matrices()) {
    for (const ValueType type : {ValueType::f32, ValueType::f64}) {
      ConversionInput input(zoo.matrix.view(), type, stream);
      for (const Policy& layout : test::layouts_to_try(format, input)) {
        SCOPED_TRACE(fmt::format("{} {} on {}", layout.text(), name(type), zoo.name));
        if (format.bytes(input, layout) > largest_reasonable_bytes(input)) {
          EXPECT_THROW(store(format, input, layout), Error);
          continue;
        }
        const auto storage = store(format, input, layout);
        EXPECT_EQ(storage->bytes, format.bytes(input, layout));
        for (const Kernel& kernel : kernels()) {
          if (kernel.backend != backend || kernel.format != format.name || !kernel.supports(*storage)) continue;
          SCOPED_TRACE(std::string(kernel.name));
          plans[kernel.name] += check_kernel(kernel, storage, zoo.matrix, input);
        }
      }
    }
  }
  for (const Kernel& kernel : kernels())
    if (kernel.backend == backend && kernel.format == format.name) {
      EXPECT_GT(plans[kernel.name], 0) << kernel.name << " took no matrix of the zoo";
    }
}

/// The formats that a kernel of the backend works on.
std::vector<std::string> names_of_formats(Backend backend) {
  std::vector<std::string> names;
  for (const Format& format : formats())
    if (std::any_of(kernels().begin(), kernels().end(),
                    [&](const Kernel& kernel) { return kernel.backend == backend && kernel.format == format.name; }))
      names.emplace_back(format.name);
  return names;
}
std::string name_of(const testing::TestParamInfo<std::string>& info) { return info.param; }

class HostKernels : public testing::TestWithParam<std::string> {};
TEST_P(HostKernels, Conform) { conform(find_format(GetParam()), Backend::host); }
INSTANTIATE_TEST_SUITE_P(, HostKernels, testing::ValuesIn(names_of_formats(Backend::host)), name_of);

/// With the lower instruction sets: kernels that the automatic choice takes have code for each.
class HostKernelsOfLowerIsa : public testing::TestWithParam<std::string> {};
TEST_P(HostKernelsOfLowerIsa, Conform) {
  for (const Isa isa : test::instruction_sets()) {
    if (isa == instruction_set()) continue;
    SCOPED_TRACE(std::string(name(isa)));
    const IsaScope scope(isa);
    conform(find_format(GetParam()), Backend::host);
  }
}
std::vector<std::string> formats_of_automatic_host_kernels() {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels())
    if (kernel.backend == Backend::host && kernel.automatic) names.emplace_back(kernel.format);
  return names;
}
INSTANTIATE_TEST_SUITE_P(, HostKernelsOfLowerIsa, testing::ValuesIn(formats_of_automatic_host_kernels()), name_of);

class GpuKernels : public testing::TestWithParam<std::string> {};
TEST_P(GpuKernels, Conform) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  conform(find_format(GetParam()), Backend::cuda);
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuKernels);
INSTANTIATE_TEST_SUITE_P(, GpuKernels, testing::ValuesIn(names_of_formats(Backend::cuda)), name_of);

/// A matrix pretending to have more than 2^31 nonzeros' worth of offsets is too big to test with; the wide-offset path is
/// taken by storage made by hand.
void check_wide_offsets(Backend backend) {
  Stream stream({backend, 0});
  const HostCsr m = test::matrix_zoo().back().matrix;
  ConversionInput input(m.view(), ValueType::f64, stream);
  const auto narrow_storage = std::static_pointer_cast<CsrStorage>(convert_csr(input, {}));
  for (const Kernel& kernel : kernels()) {
    if (kernel.backend != backend || kernel.format != "csr") continue;
    auto wide = std::make_shared<CsrStorage>();
    static_cast<Storage&>(*wide) = static_cast<const Storage&>(*narrow_storage);
    wide->wide_offsets = true;
    wide->row_ptr = Buffer(stream.device(), m.row_ptr.size() * sizeof(std::int64_t));
    wide->col_idx = Buffer(stream.device(), narrow_storage->col_idx.bytes());
    wide->values = Buffer(stream.device(), narrow_storage->values.bytes());
    copy_to_device(wide->row_ptr.data(), m.row_ptr.data(), wide->row_ptr.bytes(), stream);
    copy_on_device(wide->col_idx.data(), narrow_storage->col_idx.data(), wide->col_idx.bytes(), stream);
    copy_on_device(wide->values.data(), narrow_storage->values.data(), wide->values.bytes(), stream);
    if (!kernel.supports(*wide)) continue;
    SCOPED_TRACE(std::string(kernel.name));
    const auto plan = make_plan(kernel, wide, kernel.policies(row_statistics(m.row_ptr)).front(), stream);
    test::check_plan<double>(*plan, m, ValueType::f64, stream);
  }
}

TEST(Conformance, HostWideOffsets) { check_wide_offsets(Backend::host); }
TEST(GpuConformance, CudaWideOffsets) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_wide_offsets(Backend::cuda);
}

void check_tuner(Backend backend) {
  Stream stream({backend, 0});
  const HostCsr m = test::matrix_zoo().back().matrix;
  PlanRequest request;
  request.measure = false;
  const ChosenPlan by_model = choose_plan(m.view(), ValueType::f64, request, stream);
  EXPECT_TRUE(by_model.measurements.empty());
  request.tune = true;
  const ChosenPlan measured = choose_plan(m.view(), ValueType::f64, request, stream);
  test::check_plan<double>(*measured.plan, m, ValueType::f64, stream);
  if (backend == Backend::cuda) {
    ASSERT_GT(measured.measurements.size(), 5u);
    EXPECT_LE(measured.product_seconds, 1.03 * measured.measurements.front().seconds);
    request.kernel = "csr_vector";
    request.policy = "threads_per_row=4";
    EXPECT_EQ(choose_plan(m.view(), ValueType::f64, request, stream).plan->policy.at("threads_per_row"), 4);
    request.policy = "threads_per_row=3";
    request.tune = false;
    EXPECT_THROW(choose_plan(m.view(), ValueType::f64, request, stream), Error);
  }
  request = {};
  request.kernel = "csr_vektor";
  EXPECT_THROW(choose_plan(m.view(), ValueType::f64, request, stream), Error);
}

TEST(Tuner, Host) { check_tuner(Backend::host); }
TEST(GpuTuner, Cuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_tuner(Backend::cuda);
}

TEST(CsrFormat, FormulaOfThreadsPerRow) {
  const auto formula = [](double mean) {
    RowStatistics rows;
    rows.mean_row = mean;
    return threads_per_row_by_formula(rows);
  };
  EXPECT_EQ(formula(0), 1);
  EXPECT_EQ(formula(1.9), 1);
  EXPECT_EQ(formula(2), 2);
  EXPECT_EQ(formula(7.99), 4);
  EXPECT_EQ(formula(27), 16);
  EXPECT_EQ(formula(32), 32);
  EXPECT_EQ(formula(1e9), 32);
}

TEST(Policy, OverridesAreChecked) {
  const Policy policy{{"threads_per_row", 8}, {"block_size", 256}};
  EXPECT_EQ(policy.with("threads_per_row=4").text(), "threads_per_row=4,block_size=256");
  EXPECT_EQ(policy.with("").text(), policy.text());
  EXPECT_THROW(policy.with("threads_per_row"), Error);
  EXPECT_THROW(policy.with("threads_per_row=four"), Error);
  try {
    policy.with("thread_per_row=4");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'threads_per_row'"), std::string::npos);
  }
}

}  // namespace
}  // namespace shardmat
