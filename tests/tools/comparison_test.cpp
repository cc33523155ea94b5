#include "tools/cli/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "kernels/base/error.h"
#include "tools/cli/samples.h"

namespace shardmat::tools {
namespace {

MeasuredTime kept(double median, double spread, int count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(median, spread);
  MeasuredTime time;
  for (int i = 0; i < count; ++i) time.samples.push_back(normal(random));
  time.median = median_of_samples(time.samples);
  return time;
}

ComparedTime compared(MeasuredTime before, MeasuredTime now) {
  ComparedTime one;
  one.before = std::move(before), one.now = std::move(now);
  find_interval(one);
  return one;
}

ReportOfTimes report_of(std::vector<NamedTime> times) {
  ReportOfTimes report;
  report.kind = "solve";
  report.times = std::move(times);
  return report;
}

TEST(Comparison, BootstrappedIntervalsHoldTheTruthMostly) {
  int held = 0, of_range = 0;
  constexpr int kTries = 100;
  for (unsigned i = 0; i < kTries; ++i) {
    const ComparedTime one = compared(kept(1, 0.05, 50, 2 * i), kept(1.1, 0.05, 50, 2 * i + 1));
    EXPECT_EQ(one.interval, "bootstrap");
    EXPECT_LE(one.low, one.ratio);
    EXPECT_GE(one.high, one.ratio);
    EXPECT_LT(one.high - one.low, 0.1);
    held += one.low <= 1.1 && 1.1 <= one.high;
    MeasuredTime a = *one.before, b = *one.now;
    for (MeasuredTime* time : {&a, &b}) {
      time->count = std::ssize(time->samples);
      time->min = *std::min_element(time->samples.begin(), time->samples.end());
      time->max = *std::max_element(time->samples.begin(), time->samples.end());
      time->samples.clear();
    }
    const ComparedTime same = compared(a, b);
    EXPECT_EQ(same.interval, "range");
    of_range += same.low <= 1.1 && 1.1 <= same.high;
  }
  EXPECT_GE(held, 80);  // of 90 expected
  EXPECT_GE(of_range, 80);
}

TEST(Samples, OneOfThoseTimedTogetherIsKept) {
  EXPECT_EQ(kept_samples({1, 1, 2, 2, 3}, 2), (std::vector<double>{1, 2, 3}));
  std::vector<double> many;
  for (int i = 0; i < 1000; ++i) many.push_back(i / 2);
  const std::vector<double> kept = kept_samples(many, 2);
  ASSERT_EQ(kept.size(), kMostSamples);
  EXPECT_EQ(kept.front(), 0);
  EXPECT_EQ(kept[100], 250);
  EXPECT_EQ(kept_samples({}).size(), 0);
}

TEST(Comparison, DifferencesNameTheOptionsThatDiffer) {
  using nlohmann::ordered_json;
  const ordered_json kept{{"type", "f64"}, {"iterations", 5}, {"ranks", {1, 2}}, {"solver", "cg"}};
  EXPECT_EQ(differences(kept, kept), "");
  const ordered_json asked{{"type", "f64"}, {"iterations", 6}, {"ranks", {1, 2, 4}}};
  EXPECT_EQ(differences(kept, asked), "iterations 5, not 6; ranks 1,2, not 1,2,4; solver cg, not left out");
}

TEST(Comparison, WhatElseDiffersIsSaid) {
  ReportOfTimes before = report_of({}), now = report_of({});
  EXPECT_TRUE(doubts_of(before, now).empty());
  before.host = "a", now.host = "b", now.complete = false, now.busy_cores = 1.5;
  before.options = R"({"type": "f64"})", now.options = R"({"type": "f32"})";
  EXPECT_EQ(
      doubts_of(before, now),
      (std::vector<std::string>{
          "They were measured on different hosts: a and b", "The first was made with other options: type f64, not f32",
          "Other programs kept 0.0 cores busy beside the first, 1.5 beside the second", "The second report is unfinished"}));
}

TEST(Comparison, OneTimeEachHasNoInterval) {
  const ComparedTime one = compared({2}, {3});
  EXPECT_EQ(one.interval, "none");
  EXPECT_DOUBLE_EQ(one.ratio, 1.5);
  EXPECT_EQ(compared({0}, {3}).ratio, 1);  // nothing was timed
}

TEST(Comparison, SlowerThanAllowedIsWhatIsCertain) {
  const MeasuredTime steady{1, {}, 0.99, 1.01, 20}, slow{1.2, {}, 1.19, 1.21, 20}, noisy{1.2, {}, 0.5, 3, 4};
  const auto all = compare(report_of({{"m", "a", steady}, {"m", "b", steady}, {"m", "c", {1}}, {"m", "d", steady}}),
                           report_of({{"m", "a", slow}, {"m", "b", noisy}, {"m", "c", {1.3}}, {"m", "e", slow}}));
  ASSERT_EQ(all.size(), 5);
  EXPECT_EQ(all[0].verdict, Verdict::slower);
  EXPECT_EQ(all[1].verdict, Verdict::same);
  EXPECT_EQ(all[2].verdict, Verdict::one_time);
  EXPECT_EQ(all[3].verdict, Verdict::only_before);
  EXPECT_EQ(all[4].verdict, Verdict::only_now);
  ASSERT_EQ(slower_by_more_than(all, 0.05).size(), 2);
  EXPECT_EQ(slower_by_more_than(all, 0.05).front()->what, "c");
  EXPECT_EQ(slower_by_more_than(all, 0.25).size(), 1);
  const auto mixed = compare(report_of({{"m", "a", {1}}, {"n", "a", {1}}, {"m", "b", {1}}}), report_of({{"n", "a", {1}}}));
  EXPECT_EQ(mixed[0].of + mixed[1].of + mixed[2].of, "mmn");
  const auto back = compare(report_of({{"m", "a", slow}}), report_of({{"m", "a", steady}}));
  EXPECT_EQ(back[0].verdict, Verdict::faster);
  EXPECT_TRUE(slower_by_more_than(back, 0).empty());
}

TEST(Comparison, ReportsOfDifferentKindsAreRefused) {
  ReportOfTimes other = report_of({{"m", "a", {1}}});
  other.kind = "bench kernels";
  EXPECT_THROW(compare(report_of({{"m", "a", {1}}}), other), Error);
  EXPECT_THROW(compare(report_of({{"m", "a", {1}}}), report_of({{"n", "a", {1}}})), Error);
  EXPECT_THROW(read_times(nlohmann::ordered_json::parse(R"({"cases": [], "machine": {}})"), "r.json"), Error);
  EXPECT_THROW(
      read_times(nlohmann::ordered_json::parse(R"({"cases": [{"report": 1}], "models": [], "no_forecasts": []})"), "r"),
      Error);
}

}  // namespace
}  // namespace shardmat::tools
