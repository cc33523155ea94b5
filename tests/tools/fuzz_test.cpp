// The JSON files that commands read, given mutations: a scaling study and a remembered plan.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "partition/files/json.h"
#include "runtime/matrix/plan_cache.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/mutations.h"
#include "tools/cli/comparison.h"
#include "tools/cli/forecast.h"

namespace shardmat::tools {
namespace {

using test::Path;

class JsonFuzzTest : public test::MutationTest {};

constexpr const char* kStudy =
    R"({"models": [{"matrix": "poisson27:n=6", "product": [{"nnz": 64, "seconds": 1e-7}, {"nnz": 4096, "seconds": 2e-6}],
"entry_bytes": 8, "overlaps": true, "split_latency_s": 1e-6, "measured_ranks": 2, "exchanges": [{"ranks": 2, "name": "halo",
"latency_s": 6e-7, "s_per_byte": 1e-10, "few_bytes": 1048576, "s_per_byte_of_few": 2e-10}], "unsteadiness": [0.9, 1, 1.5]}], "no_forecasts": [], "cases": [{"matrix":
"poisson27:n=6", "ranks": 1, "exchange_asked": "auto", "samples_s": [2e-6, 1e-6, 3e-6], "report": {"exchange": {"name": "none"}, "iteration": {"median_s":
2e-6, "min_s": 1e-6, "max_s": 3e-6, "iterations": 3}}}], "solves": [{"matrix": "poisson27:n=6", "ranks": 1, "preconditioner_asked": "auto",
"samples": {"set_up_s": [1], "solve_s": [2]}}]})";

TEST_F(JsonFuzzTest, Studies) {
  mutate("study.json", {kStudy}, [](const Path& file) {
    for (const StudiedMatrix& studied : read_study(file.string())) {
      describe(studied.model);
      for (const std::int64_t nnz : {0, 1, 100, 1'000'000}) EXPECT_TRUE(std::isfinite(studied.model.product(nnz)));
      PartitionQuality quality;
      quality.nnz_max = 1000;
      if (studied.model.exchanges.empty()) continue;
      EXPECT_LT(forecast(studied.model, quality, 2).iteration, 1e14);
    }
  });
}

TEST_F(JsonFuzzTest, ComparedReports) {
  mutate("study.json", {kStudy}, [](const Path& file) {
    const ReportOfTimes times = read_times(read_json(file), file.string());
    if (times.times.empty()) return;  // nothing in common
    for (const ComparedTime& one : compare(times, times)) EXPECT_FALSE(std::isnan(one.ratio));
  });
}

TEST_F(JsonFuzzTest, RememberedPlans) {
  HostCsr matrix;
  for (const test::NamedMatrix& zoo : test::matrix_zoo())
    if (zoo.name == "node blocks") matrix = zoo.matrix;
  Stream stream{Device{Backend::host, 0}};
  const PlanCache cache{directory_.string(), "a CPU"};
  PlanRequest tune;
  tune.tune = true;
  choose_remembered_plan(matrix.view(), ValueType::f64, tune, cache, stream);
  Path remembered;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_))
    if (entry.is_regular_file()) remembered = entry.path();
  const std::string name = remembered.lexically_relative(directory_).string();
  mutate(
      name, {test::bytes_of(remembered)},
      [&](const Path&) {
        const ChosenPlan chosen = choose_remembered_plan(matrix.view(), ValueType::f64, {}, cache, stream);
        EXPECT_TRUE(chosen.plan);
        if (chosen.decision != Decision::remembered)  // for a good reason, which is said
          throw Error(ErrorKind::input, chosen.why);
      },
      {}, 300);  // a plan that is refused costs the choice of another one
}

}  // namespace
}  // namespace shardmat::tools
