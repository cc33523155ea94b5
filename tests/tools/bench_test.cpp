#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/matrix_zoo.h"
#include "tools/bench/cache_model.h"
#include "tools/bench/papers/busy_share.h"
#include "tools/bench/papers/profiler.h"
#include "tools/bench/product_check.h"
#include "tools/bench/result_table.h"
#include "tools/bench/trial.h"

namespace shardmat::tools {
namespace {

HostCsr zoo_matrix(const std::string& name) {
  for (const test::NamedMatrix& zoo : test::matrix_zoo())
    if (zoo.name == name) return zoo.matrix;
  throw std::runtime_error("no matrix " + name);
}

template <class T>
void finds_wrong_rows(ValueType type) {
  const HostCsr m = zoo_matrix("every third row");
  Stream stream({Backend::host, 0});
  std::vector<double> x(500);
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = static_cast<double>(static_cast<T>(test::value_of(j)));
  const ProductCheck check(m.view(), type, x);
  std::vector<T> y(500);
  for (std::size_t i = 0; i < y.size(); ++i)
    for (auto k = static_cast<std::size_t>(m.row_ptr[i]); k < static_cast<std::size_t>(m.row_ptr[i + 1]); ++k)
      y[i] += static_cast<T>(m.values[k]) * static_cast<T>(x[static_cast<std::size_t>(m.col_idx[k])]);
  EXPECT_EQ(check.compare(y.data(), stream).wrong_rows, 0);
  EXPECT_EQ(check.compare(y.data(), stream).worst_row, -1);

  y[30] *= T(1) + 100 * std::numeric_limits<T>::epsilon() / std::abs(y[30]);
  EXPECT_EQ(check.compare(y.data(), stream).worst_row, 30);
  y[301] = std::numeric_limits<T>::min();  // an empty row must be zero
  y[400] = std::numeric_limits<T>::quiet_NaN();
  const ProductCheck::Outcome outcome = check.compare(y.data(), stream);
  EXPECT_EQ(outcome.wrong_rows, 3);
  EXPECT_EQ(outcome.worst_row, 301);
}

TEST(ProductCheck, FindsWrongRowsInF32) { finds_wrong_rows<float>(ValueType::f32); }
TEST(ProductCheck, FindsWrongRowsInF64) { finds_wrong_rows<double>(ValueType::f64); }

/// Leaves the last row alone.
class LazyPlan final : public Plan {
 public:
  explicit LazyPlan(std::shared_ptr<Storage> storage) : Plan(std::move(storage)) {}
  void multiply(double, const void*, double, void* y, Stream&) const override {
    for (std::int64_t i = 0; i + 1 < storage().rows; ++i) static_cast<double*>(y)[i] = 0;
  }
};

TEST(Trial, MeasuresAndRefusesAndFindsRowsThatNobodyWrites) {
  Stream stream({Backend::host, 0});
  const HostCsr empty = zoo_matrix("all rows empty"), banded = zoo_matrix("banded");
  Trial trial(banded.view(), ValueType::f64, stream, {});
  const Kernel& kernel = find_kernel("csr_host", Backend::host);
  const Policy policy = kernel.policies(trial.input().rows()).front();
  const StoredMatrix stored = trial.convert(find_format("csr"), {});
  const KernelResult result = trial.measure(kernel, stored, policy);
  EXPECT_TRUE(result.measured());
  EXPECT_TRUE(result.right());
  EXPECT_GT(result.timing.median, 0);
  EXPECT_EQ(trial.x_entries(), 700);
  EXPECT_EQ(result.moved_bytes, result.format_bytes + 8 * (700 + 700));

  StoredMatrix refused;
  refused.refused = "too large";
  EXPECT_EQ(trial.measure(kernel, refused, policy).refused, "too large");

  Trial of_empty(empty.view(), ValueType::f64, stream, {});
  EXPECT_EQ(of_empty.x_entries(), 0);
  const KernelResult lazy = of_empty.measure(LazyPlan(of_empty.convert(find_format("csr"), {}).storage));
  EXPECT_EQ(lazy.check.wrong_rows, 1);
  EXPECT_EQ(lazy.check.worst_row, 99);
}

TEST(LruCache, EvictsTheLeastRecentlyUsedLineOfASet) {
  LruCache cache(2 * 2 * 128, 128, 2);  // two sets of two lines
  EXPECT_FALSE(cache.access(0));
  EXPECT_FALSE(cache.access(2));
  EXPECT_TRUE(cache.access(0));
  EXPECT_FALSE(cache.access(1));  // the other set
  EXPECT_FALSE(cache.access(4));  // throws 2 out
  EXPECT_TRUE(cache.access(0));
  EXPECT_FALSE(cache.access(2));
  EXPECT_TRUE(cache.access(1));
}

TEST(CacheModel, CountsALineOnce) {
  HostCsr row;
  row.rows = 1;
  row.cols = 256;
  for (std::int64_t j = 0; j < 256; ++j) {
    row.col_idx.push_back(j);
    row.values.push_back(1);
  }
  row.row_ptr.push_back(256);
  const L1Model model;
  EXPECT_DOUBLE_EQ(crs_hit_rates(row.view(), ValueType::f32, model).x, 31.0 / 32);
  EXPECT_DOUBLE_EQ(crs_hit_rates(row.view(), ValueType::f64, model).x, 15.0 / 16);
  // Folded to pieces of 8: 32 threads read columns 0, 8, 16 …: 8 lines of x in f32, at each of 8 steps.
  EXPECT_DOUBLE_EQ(fold_hit_rates(row.view(), ValueType::f32, 8, model).x, 7.0 / 8);
  for (const char* const nothing : {"all rows empty", "0x0"}) {
    EXPECT_EQ(crs_hit_rates(zoo_matrix(nothing).view(), ValueType::f64, model).x, 0);
    EXPECT_EQ(fold_hit_rates(zoo_matrix(nothing).view(), ValueType::f64, 1, model).x, 0);
  }
}

TEST(BusyShare, CountsTheTimeInWhichMultiprocessorsWait) {
  EXPECT_DOUBLE_EQ(busy_share({}, 4), 0);
  EXPECT_DOUBLE_EQ(busy_share({{1}}, 4), 0.25);
  EXPECT_DOUBLE_EQ(busy_share({{1, 1, 1, 1}}, 4), 1);
  EXPECT_DOUBLE_EQ(busy_share({{1, 3, 1, 1}}, 2), 1);       // 1 1 1 beside 3
  EXPECT_DOUBLE_EQ(busy_share({{1, 1}, {2}}, 2), 4.0 / 6);  // a launch waits for the one before
}

TEST(Profiler, ReadsTheMeanOfAMetric) {
  const std::string csv =
      "==PROF== Connected to process 1\n"
      "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
      "\"0\",\"fold_pieces(long, long)\",\"l1.pct\",\"%\",\"41.5\"\n"
      "\"1\",\"fold_pieces(long, long)\",\"l1.pct\",\"%\",\"42.5\"\n"
      "\"1\",\"fold_pieces(long, long)\",\"cycles\",\"cycle\",\"1,234\"\n";
  EXPECT_DOUBLE_EQ(metric_in_csv(csv, "l1.pct").value(), 42);
  EXPECT_DOUBLE_EQ(metric_in_csv(csv, "cycles").value(), 1234);
  EXPECT_FALSE(metric_in_csv(csv, "l2.pct"));
  EXPECT_FALSE(metric_in_csv("", "l1.pct"));
}

TEST(ResultTable, AlignsByCharactersAndKeepsNulls) {
  ResultTable table;
  table.title = "Title";
  table.columns = {{"name", "name"}, {"time_us", "µs"}};
  table.rows = {
      {Cell::word("a–b"), Cell::figure(1.25, 2)}, {Cell::word("c"), Cell::none()}, {Cell::word("d"), Cell::count(1234)}};
  EXPECT_EQ(table.text(), "Title\n  name     µs\n  a–b    1.25\n  c         –\n  d     1,234\n");
  EXPECT_EQ(table.json()["rows"][0]["time_us"], 1.25);
  EXPECT_TRUE(table.json()["rows"][1]["time_us"].is_null());
}

TEST(ResultTable, WithoutRowsSaysSo) {
  ResultTable table;
  table.title = "Title";
  table.columns = {{"name", "name"}};
  EXPECT_EQ(table.text(), "Title\n  (nothing was measured)\n");
  EXPECT_EQ(table.json()["rows"].size(), 0);
}

}  // namespace
}  // namespace shardmat::tools
