#include "tools/bench/peer_pairs.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace shardmat::tools {
namespace {

std::vector<double> ascending(int count) {
  std::vector<double> figures(static_cast<std::size_t>(count));
  std::iota(figures.begin(), figures.end(), 1);
  return figures;
}

TEST(MedianInterval, IsThatOfTheTables) {
  // Ranks and coverage of the tables of order statistics, e.g. Hahn and Meeker, "Statistical Intervals", table A.15.
  struct Entry {
    int count;
    double low, high, coverage;
  };
  for (const Entry& entry : {Entry{5, 1, 5, 0.9375},
                             {8, 2, 7, 0.9297},
                             {10, 2, 9, 0.9785},
                             {21, 7, 15, 0.9216},
                             {31, 11, 21, 0.9292},
                             {100, 42, 59, 0.9114}}) {
    const MedianInterval interval = median_interval(ascending(entry.count));
    EXPECT_EQ(interval.low, entry.low) << entry.count;
    EXPECT_EQ(interval.high, entry.high) << entry.count;
    EXPECT_NEAR(interval.coverage, entry.coverage, 1e-4) << entry.count;
    EXPECT_DOUBLE_EQ(interval.median, (entry.count + 1) / 2.0);
  }
}

TEST(MedianInterval, OfFewFiguresSaysHowSureItIs) {
  const MedianInterval one = median_interval({3}), four = median_interval({4, 1, 2, 3});
  EXPECT_EQ(one.median, 3);
  EXPECT_EQ(one.low, 3);
  EXPECT_EQ(one.high, 3);
  EXPECT_EQ(one.coverage, 0);
  EXPECT_EQ(four.median, 2.5);
  EXPECT_EQ(four.low, 1);
  EXPECT_EQ(four.high, 4);
  EXPECT_DOUBLE_EQ(four.coverage, 0.875);
}

/// Products that take a given time, and a record of who was measured.
struct Contest {
  std::string order;
  std::vector<std::int64_t> counts;

  TimedProducts side(char name, double seconds) {
    return [this, name, seconds](std::int64_t products) {
      order += name;
      if (name == 'o') counts.push_back(products);
      return seconds * static_cast<double>(products);
    };
  }
};

TEST(Pairs, TakeTurnsAndFillTheTime) {
  Contest contest;
  ForeignLoad load([] { return 0.0; });
  const Pairs pairs = measure_pairs(contest.side('o', 1e-4), contest.side('t', 3e-4), {4, 0.01, 0}, load);
  EXPECT_EQ(contest.order.substr(contest.order.size() - 8),
            "ottoot"
            "to");
  EXPECT_GE(contest.counts.back(), 100);
  EXPECT_LE(contest.counts.back(), 200);
  ASSERT_EQ(pairs.ours.size(), 4u);
  EXPECT_EQ(pairs.repeated, 0);
  for (const double ratio : pairs.ratios()) EXPECT_NEAR(ratio, 3, 1e-12);
  for (const double seconds : pairs.ours) EXPECT_NEAR(seconds, 1e-4, 1e-16);
}

TEST(Pairs, AreMeasuredAgainWhileOtherProgramsRun) {
  // Own CPU time that runs backwards looks like that much work of others: some 1e12 cores. A tick of the system's clock (10
  // ms) within the microsecond of a pair looks like 1e4.
  constexpr double kMany = 1e9;
  double own = 0;
  bool busy = true;
  ForeignLoad load([&] { return busy ? own -= 1e6 : own; });
  int measured = 0;
  const TimedProducts ours = [&](std::int64_t products) {
    if (++measured == 6) busy = false;  // one call finds the number of products
    return static_cast<double>(products);
  };
  const TimedProducts theirs = [](std::int64_t products) { return 2 * static_cast<double>(products); };
  const Pairs quiet_at_last = measure_pairs(ours, theirs, {5, 0.5, kMany}, load);
  EXPECT_EQ(quiet_at_last.ours.size(), 5u);
  EXPECT_EQ(quiet_at_last.repeated, 4);
  EXPECT_LT(quiet_at_last.foreign_cores, kMany);
  measured = 10, busy = true;
  const Pairs never_quiet = measure_pairs(ours, theirs, {5, 0.5, kMany}, load);
  EXPECT_EQ(never_quiet.ours.size(), 5u);
  EXPECT_EQ(never_quiet.repeated, 10);
  EXPECT_GT(never_quiet.foreign_cores, kMany);
}

}  // namespace
}  // namespace shardmat::tools
