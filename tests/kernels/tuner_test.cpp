// The cost model, and how the tuner uses it.
#include "kernels/choose/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/choose/registry.h"
#include "kernels/cost_model.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/packed.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

HostCsr zoo_matrix(const std::string& name) {
  for (test::NamedMatrix& zoo : test::matrix_zoo())
    if (zoo.name == name) return zoo.matrix;
  throw Error(ErrorKind::internal, "no such matrix in the zoo: " + name);
}

class CostModel : public ::testing::Test {
 protected:
  ConversionInput input(const HostCsr& matrix, ValueType type = ValueType::f64) { return {matrix.view(), type, stream_}; }
  Stream stream_{{Backend::host, 0}};
};

TEST_F(CostModel, LocalityIsOfLinesOfX) {
  const HostCsr diagonal = zoo_matrix("diagonal"), banded = zoo_matrix("banded"), scattered = zoo_matrix("wide");
  ConversionInput diagonal_input = input(diagonal), banded_input = input(banded), scattered_input = input(scattered);
  EXPECT_GT(sampled_locality(diagonal_input), 8);  // 1000 neighbours, in lines of 16
  EXPECT_GT(sampled_locality(banded_input), 4);    // rows of 17
  EXPECT_LT(sampled_locality(scattered_input), 1.3);
  ConversionInput narrow = input(diagonal, ValueType::f32);
  EXPECT_GT(sampled_locality(narrow), sampled_locality(diagonal_input));
}

TEST_F(CostModel, StreamsAreBytesOverEfficiency) {
  const HostCsr banded = zoo_matrix("banded");
  ConversionInput in = input(banded);
  const double all = 1e6 + 8.0 * 1400;
  EXPECT_DOUBLE_EQ(effective_bytes(in, 1e6, {1, 0, 0}), all);
  EXPECT_DOUBLE_EQ(effective_bytes(in, 1e6, {0.5, 0, 0}), 2 * all);
  EXPECT_GT(effective_bytes(in, 1e6, {1, 0, 0.5}), all) << "rows at the ends are shorter";
}

TEST_F(CostModel, GathersBoundWhatJumps) {
  const HostCsr jumps = zoo_matrix("wide");
  ConversionInput in = input(jumps);
  EXPECT_DOUBLE_EQ(effective_bytes(in, 1, {1, 0, 0}), effective_bytes(in, 2, {0.9, 0, 0}));
  EXPECT_GT(effective_bytes(in, 1, {1, 0, 0}), 15.0 * static_cast<double>(jumps.nnz()));
}

TEST(TunerModel, PredictsAndTakesTheCheapest) {
  Stream stream({Backend::host, 0});
  const HostCsr m = zoo_matrix("node blocks");
  PlanRequest request;
  request.products = 10;  // so few that measuring does not pay
  const ChosenPlan chosen = choose_plan(m.view(), ValueType::f64, request, stream);
  EXPECT_EQ(chosen.decision, Decision::model);
  ASSERT_GE(chosen.predictions.size(), 2u);
  EXPECT_EQ(chosen.plan->kernel, chosen.predictions.front().kernel);
  EXPECT_TRUE(std::is_sorted(chosen.predictions.begin(), chosen.predictions.end(),
                             [](const Prediction& a, const Prediction& b) { return a.bytes < b.bytes; }));
  EXPECT_EQ(chosen.choosing_products(), 0) << "not measured, so not known";
}

TEST(TunerModel, MeasuresOnTheHostWhereManyProductsAreExpected) {
  Stream stream({Backend::host, 0});
  const HostCsr m = zoo_matrix("node blocks");
  PlanRequest request;
  request.products = 300;
  const ChosenPlan chosen = choose_plan(m.view(), ValueType::f64, request, stream);
  EXPECT_EQ(chosen.decision, Decision::measured);
  const auto csr = [](const Measurement& one) { return one.kernel == "csr_host"; };
  EXPECT_TRUE(std::any_of(chosen.measurements.begin(), chosen.measurements.end(), csr)) << "never slower than CSR";
  request.measure = false;
  EXPECT_EQ(choose_plan(m.view(), ValueType::f64, request, stream).decision, Decision::model);
}

TEST(TunerMeasures, WhatIsLeftOpenAndSaysWhatItTook) {
  Stream stream({Backend::host, 0});
  const HostCsr m = zoo_matrix("node blocks");
  PlanRequest request;
  request.tune = true;
  request.reproducible = true;
  const ChosenPlan chosen = choose_plan(m.view(), ValueType::f64, request, stream);
  EXPECT_EQ(chosen.decision, Decision::measured);
  const auto is_chosen = [&](const Measurement& one) {
    return one.kernel == chosen.plan->kernel && one.policy == chosen.plan->tunables();
  };
  const auto own = std::find_if(chosen.measurements.begin(), chosen.measurements.end(), is_chosen);
  ASSERT_NE(own, chosen.measurements.end());
  EXPECT_EQ(chosen.product_seconds, own->seconds);
  EXPECT_GT(chosen.choosing_seconds, chosen.product_seconds);
  EXPECT_TRUE(chosen.plan->reproducible());
  request.budget_seconds = 1e-9;
  EXPECT_EQ(choose_plan(m.view(), ValueType::f64, request, stream).measurements.size(), 1u) << "the budget ends it";
}

TEST(TunerModel, EveryAutomaticKernelHasAnEstimate) {
  for (const Kernel& kernel : kernels())
    if (kernel.automatic) {
      EXPECT_NE(kernel.estimate, nullptr) << kernel.name;
    }
}

TEST(PackedEstimate, IsNearTheExactBytes) {
  Stream stream({Backend::host, 0});
  const Format& packed = find_format("packed");
  for (const char* name : {"diagonal", "banded", "node blocks"}) {
    const HostCsr m = zoo_matrix(name);
    ConversionInput input(m.view(), ValueType::f64, stream);
    const Policy layout = packed.layouts(input).front();
    const auto exact = static_cast<double>(packed.bytes(input, layout));
    EXPECT_NEAR(static_cast<double>(packed_estimate(input, layout)) / exact, 1, 0.15) << name << ", " << exact << " bytes";
  }
}

/// An identity with one full row: beyond what ELL may take.
HostCsr arrow() {
  HostCsr m;
  m.rows = m.cols = 5000;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t j = i == 0 ? 0 : i; j < (i == 0 ? m.cols : i + 1); ++j) m.col_idx.push_back(j);
    m.row_ptr.push_back(std::ssize(m.col_idx));
  }
  m.values.assign(m.col_idx.size(), 1);
  return m;
}

TEST(TunerRefuses, ANamedKernelWhoseFormatDoesNotSuitAndSaysWhatToDo) {
  Stream stream({Backend::host, 0});
  const HostCsr m = arrow();
  PlanRequest request;
  request.kernel = "ell_host";
  for (const bool tune : {false, true}) {
    request.tune = tune;
    try {
      choose_plan(m.view(), ValueType::f64, request, stream);
      FAIL() << "ell_host took it";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::resources);
      EXPECT_NE(std::string(e.what()).find("does not suit this matrix"), std::string::npos) << e.what();
      EXPECT_TRUE(std::string(e.what()).ends_with("Use another kernel, or auto")) << e.what();
      EXPECT_EQ(e.setting(), "kernel");
    }
  }
  ConversionInput input(m.view(), ValueType::f64, stream);
  try {
    store(find_format("ell"), input, {});
    FAIL() << "ell took it";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find("another kernel"), std::string::npos) << e.what();
    EXPECT_EQ(e.setting(), "");
  }
}

/// Scattered nonzeros leave blocks of 4 and 6 rows nearly empty.
TEST(TunerMeasures, LayoutsThatSuitOfANamedKernel) {
  Stream stream({Backend::host, 0});
  HostCsr m;
  m.rows = m.cols = 20'000;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    m.col_idx.push_back(i * 7919 % 10'000);
    m.col_idx.push_back(10'000 + i * 6007 % 10'000);
    m.row_ptr.push_back(std::ssize(m.col_idx));
  }
  m.values.assign(m.col_idx.size(), 1);
  PlanRequest request;
  request.tune = true;
  request.kernel = "bcsr_host";
  const ChosenPlan chosen = choose_plan(m.view(), ValueType::f64, request, stream);
  ASSERT_EQ(chosen.measurements.size(), 2u);
  for (const Measurement& measured : chosen.measurements)
    EXPECT_TRUE(measured.policy == "block=2" || measured.policy == "block=3") << measured.policy;
}

void measures_by_default() {
  Stream stream({Backend::cuda, 0});
  const HostCsr m = zoo_matrix("power law");
  const ChosenPlan chosen = choose_plan(m.view(), ValueType::f64, {}, stream);
  EXPECT_EQ(chosen.decision, Decision::measured);
  EXPECT_LE(chosen.measurements.size(), 14u);  // as the matrix is small
  EXPECT_EQ(std::count_if(chosen.measurements.begin(), chosen.measurements.end(),
                          [](const Measurement& measured) { return measured.kernel == "csr_cusparse"; }),
            2);
  PlanRequest request;
  request.reproducible = true;
  EXPECT_TRUE(choose_plan(m.view(), ValueType::f64, request, stream).plan->reproducible());
  request.kernel = "csr_cusparse";
  request.policy = "algorithm=1";
  EXPECT_THROW(choose_plan(m.view(), ValueType::f64, request, stream), Error);
}

TEST(GpuTunerMeasures, ByDefaultWithinLimits) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  measures_by_default();
}

}  // namespace
}  // namespace shardmat
