// Remembered choices: hits, misses, files that are damaged, directories that cannot be written, many ranks at once.
#include "runtime/matrix/plan_cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "kernels/base/core_wait.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

namespace fs = std::filesystem;

class PlanCacheTest : public ::testing::Test {
 protected:
  const ThreadCount one_{1};  // measurements of several threads on a busy machine are not remembered
  PlanCacheTest() {
    for (const test::NamedMatrix& zoo : test::matrix_zoo())
      if (zoo.name == "node blocks") matrix_ = zoo.matrix;
  }
  ~PlanCacheTest() override { fs::remove_all(own_); }

  /// For few products: nothing is measured unless the request says so.
  ChosenPlan choose(PlanRequest request, ValueType type = ValueType::f64) {
    request.products = 10;
    return choose_remembered_plan(matrix_.view(), type, request, cache_, stream_);
  }
  ChosenPlan measure() {
    PlanRequest request;
    request.tune = true;
    return choose(request);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(cache_.directory))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }
  void write(const std::string& text) const { std::ofstream(files().at(0), std::ios::trunc) << text; }
  std::string read() const {
    std::ifstream file(files().at(0));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace(const std::string& from, const std::string& to) const {
    std::string text = read();
    const auto at = text.rfind(from);
    ASSERT_NE(at, std::string::npos) << text;
    write(text.replace(at, from.size(), to));
  }

  Stream stream_{{Backend::host, 0}};
  const std::string own_ = fmt::format("{}/shardmat_plans_{}", fs::temp_directory_path().string(), ::getpid());
  PlanCache cache_{own_, "a CPU"};
  HostCsr matrix_;
};

TEST_F(PlanCacheTest, RemembersWhatWasMeasured) {
  const ChosenPlan first = measure();
  EXPECT_EQ(first.decision, Decision::measured);
  EXPECT_GE(first.measurements.size(), 2u);
  EXPECT_GT(first.choosing_seconds, 0);
  ASSERT_EQ(files().size(), 1u);

  const ChosenPlan second = choose({});
  EXPECT_EQ(second.decision, Decision::remembered);
  EXPECT_NE(second.why.find("remembered from " + files().at(0).string()), std::string::npos) << second.why;
  EXPECT_EQ(second.plan->kernel, first.plan->kernel);
  EXPECT_EQ(second.plan->tunables(), first.plan->tunables());
  EXPECT_EQ(second.product_seconds, first.product_seconds);
  EXPECT_TRUE(second.measurements.empty());
  EXPECT_TRUE(second.predictions.empty());
  EXPECT_EQ(measure().decision, Decision::measured) << "tune measures anew";
}

TEST_F(PlanCacheTest, ForgetsWhatWasMeasuredOnABusyMachine) {
  double waited = 0;
  pretend_core_wait([&] { return waited += 1e6; });  // from one look to the next
  {
    const ThreadCount two(2);
    const ChosenPlan busy = measure();
    EXPECT_EQ(busy.decision, Decision::measured);
    const std::string why = "not remembered: other processes had the cores for 100 % of the time";
    EXPECT_NE(busy.why.find(why), std::string::npos) << busy.why;
    EXPECT_FALSE(fs::exists(own_) && !files().empty());
    pretend_core_wait([] { return 5.0; });
    EXPECT_EQ(measure().why.find("not remembered"), std::string::npos);
    EXPECT_EQ(files().size(), 1u);
    EXPECT_EQ(choose({}).decision, Decision::remembered);
  }
  fs::remove_all(own_);
  pretend_core_wait([&] { return waited += 1e6; });
  measure();  // one thread waits for no other
  EXPECT_EQ(files().size(), 1u);
  pretend_core_wait({});
}

TEST_F(PlanCacheTest, OtherQuestionsAreMisses) {
  measure();
  EXPECT_EQ(choose({}, ValueType::f32).decision, Decision::model);
  PlanRequest request;
  request.reproducible = true;
  EXPECT_EQ(choose(request).decision, Decision::model);
  request = {};
  request.measure = false;
  EXPECT_EQ(choose(request).decision, Decision::model);
  request = {};
  request.kernel = "csr_host";
  EXPECT_EQ(choose(request).decision, Decision::asked);
  cache_.device_name = "another CPU";
  EXPECT_EQ(choose({}).decision, Decision::model);
  cache_.device_name = "a CPU";
  EXPECT_EQ(choose({}).decision, Decision::remembered);
  ASSERT_LT(matrix_.col_idx[5] + 1, matrix_.col_idx[6]);  // the end of a run
  ++matrix_.col_idx[5];
  EXPECT_EQ(choose({}).decision, Decision::model);
}

TEST_F(PlanCacheTest, ValuesDoNotMatter) {
  measure();
  for (double& value : matrix_.values) value *= 3;
  EXPECT_EQ(choose({}).decision, Decision::remembered);
}

TEST_F(PlanCacheTest, DamagedFilesAreSaidAndReplaced) {
  const std::string good = (measure(), read());
  for (const std::string& text :
       {std::string(), good.substr(0, good.size() / 2), std::string("[1, 2]"), std::string("{}")}) {
    write(text);
    const ChosenPlan chosen = choose({});
    EXPECT_EQ(chosen.decision, Decision::model) << text;
    EXPECT_NE(chosen.why.find("was of no use"), std::string::npos) << chosen.why;
    ASSERT_TRUE(chosen.plan);
  }
  EXPECT_EQ(measure().why.find("no use"), std::string::npos);
  EXPECT_EQ(choose({}).decision, Decision::remembered);
}

TEST_F(PlanCacheTest, WhatNoLongerFitsIsChosenAnew) {
  const std::string kernel = measure().plan->kernel;
  replace("\"kernel\": \"" + kernel + "\",\n  \"policy\": \"", "\"kernel\": \"csr_vektor\",\n  \"policy\": \"");
  ChosenPlan chosen = choose({});
  EXPECT_EQ(chosen.decision, Decision::model);
  EXPECT_NE(chosen.why.find("csr_vektor"), std::string::npos) << chosen.why;
  measure();
  replace("\n  \"policy\": \"", "\n  \"policy\": \"speed=11,");
  chosen = choose({});
  EXPECT_EQ(chosen.decision, Decision::model);
  EXPECT_NE(chosen.why.find("speed"), std::string::npos) << chosen.why;
  measure();
  replace("\"device\": \"a CPU\"", "\"device\": \"a GPU\"");
  EXPECT_NE(choose({}).why.find("something else"), std::string::npos);
}

TEST_F(PlanCacheTest, DirectoriesThatCannotBeWrittenAreSaid) {
  std::ofstream(cache_.directory) << "a file where the directory should be";
  const ChosenPlan chosen = measure();
  EXPECT_EQ(chosen.decision, Decision::measured);
  EXPECT_NE(chosen.why.find("not remembered"), std::string::npos) << chosen.why;
  cache_.directory.clear();
  EXPECT_EQ(measure().why.find("not remembered"), std::string::npos);
}

TEST_F(PlanCacheTest, RanksShareOneDirectory) {
  cache_.directory = world().broadcast(own_);
  for (int i = 0; i < 10; ++i) {
    const ChosenPlan measured = measure();
    EXPECT_EQ(measured.why.find(';'), std::string::npos) << measured.why;
    const ChosenPlan chosen = choose({});
    EXPECT_EQ(chosen.decision, Decision::remembered) << chosen.why;
  }
  world().barrier();  // before one removes it
}

TEST(PatternFingerprint, TellsPatternsApart) {
  std::vector<std::uint64_t> seen;
  for (const test::NamedMatrix& zoo : test::matrix_zoo()) {
    EXPECT_EQ(pattern_fingerprint(zoo.matrix.view()), pattern_fingerprint(zoo.matrix.view())) << zoo.name;
    if (zoo.name == "node blocks, symmetric") continue;  // the pattern of "node blocks"
    seen.push_back(pattern_fingerprint(zoo.matrix.view()));
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
}

}  // namespace
}  // namespace shardmat
