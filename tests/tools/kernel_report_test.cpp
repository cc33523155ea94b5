#include "tools/bench/kernel_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace shardmat::tools {
namespace {

KernelResult result(const std::string& kernel, const std::string& format, double seconds) {
  KernelResult r;
  r.kernel = kernel;
  r.format = format;
  r.timing = {seconds, seconds, seconds, 5};
  r.format_bytes = 1200;
  r.moved_bytes = 2000;
  return r;
}

KernelReport report_of(Backend backend) {
  KernelReport report;
  report.machine.device = {backend, 0};
  report.machine.copy_bandwidth = 1e9;
  KernelCase one;
  one.name = one.argument = "matrix";
  one.rows.nnz = 100;
  one.results = {result("csr_cusparse", "csr", 8e-6), result("sell_cusparse", "sell", 4e-6),
                 result("csr_vector", "csr", 5e-6), result("sell", "sell", 2e-6), result("fast_but_wrong", "ell", 1e-6)};
  one.results.back().check.wrong_rows = 3;
  KernelResult refused;
  refused.kernel = "dia";
  refused.refused = "format dia does not suit";
  one.results.push_back(refused);
  report.cases = {one, one};
  report.cases[1].results[3] = result("sell", "sell", 8e-6);  // csr_vector is now our best
  return report;
}

TEST(KernelReport, YardstickIsCusparseOnAGpuAndCsrOnTheHost) {
  const KernelReport gpu = report_of(Backend::cuda);
  EXPECT_EQ(gpu.cases[0].yardstick(Backend::cuda)->kernel, "sell_cusparse");
  EXPECT_EQ(gpu.cases[0].yardstick(Backend::host)->kernel, "csr_vector");
  EXPECT_EQ(gpu.cases[0].best_own()->kernel, "sell");
  EXPECT_EQ(gpu.cases[1].best_own()->kernel, "csr_vector");
}

TEST(KernelReport, RatiosAndTheirMeanAreOverRightResults) {
  KernelReport report = report_of(Backend::cuda);
  report.cases[0].chosen = report.cases[0].results[2];
  const auto json = to_json(report);
  EXPECT_DOUBLE_EQ(json["cases"][0]["best_own"]["ratio"], 2.0);
  EXPECT_DOUBLE_EQ(json["cases"][1]["best_own"]["ratio"], 0.8);
  EXPECT_DOUBLE_EQ(json["cases"][0]["auto"]["ratio"], 0.8);
  EXPECT_TRUE(json["cases"][1]["auto"].is_null());
  EXPECT_NEAR(json["geometric_mean_ratio"]["best_own"].get<double>(), std::sqrt(2 * 0.8), 1e-12);
  EXPECT_NEAR(json["geometric_mean_ratio"]["auto"].get<double>(), 0.8, 1e-12);
  EXPECT_EQ(json["cases"][0]["results"][5]["refused"], "format dia does not suit");
  EXPECT_DOUBLE_EQ(json["cases"][0]["results"][0]["bytes_per_nonzero"], 12);
  EXPECT_DOUBLE_EQ(json["cases"][0]["results"][0]["share_of_copy"], 2000 / 8e-6 / 1e9);
}

TEST(KernelReport, SaysWhatIsWrongAndWhatWasRefused) {
  const KernelReport report = report_of(Backend::cuda);
  EXPECT_EQ(count_wrong(report), 2);
  const std::string text = case_text(report.cases[0], report.machine);
  EXPECT_NE(text.find("WRONG"), std::string::npos);
  EXPECT_NE(text.find("3 wrong rows"), std::string::npos);
  EXPECT_NE(text.find("not measured: dia: format dia does not suit"), std::string::npos);
  EXPECT_NE(summary_text(report).find("2 WRONG results"), std::string::npos);
}

TEST(KernelReport, SaysThatTimesAreUnsteady) {
  KernelReport report = report_of(Backend::cuda);
  EXPECT_EQ(summary_text(report).find("unsteady"), std::string::npos);
  report.cases[0].results[0].timing.min = 3e-6;
  EXPECT_NE(summary_text(report).find("1 of 10 times are unsteady"), std::string::npos);
}

TEST(KernelReport, WithoutAYardstickThereAreNoRatios) {
  KernelReport report = report_of(Backend::cuda);
  for (KernelCase& one : report.cases) one.results.erase(one.results.begin(), one.results.begin() + 2);
  const auto json = to_json(report);
  EXPECT_TRUE(json["cases"][0]["yardstick"].is_null());
  EXPECT_TRUE(json["cases"][0]["best_own"]["ratio"].is_null());
  EXPECT_TRUE(json["geometric_mean_ratio"]["best_own"].is_null());
  EXPECT_NE(summary_text(report).find("–"), std::string::npos);
}

}  // namespace
}  // namespace shardmat::tools
