// How long products of batches take, as learned from those before.
#include "tools/serve/ranks/batch_pace.h"

#include <gtest/gtest.h>

namespace shardmat::serve {
namespace {

/// 0.2 ms, and 5 ns for each unit of work.
double true_seconds(std::int64_t work) { return 2e-4 + 5e-9 * static_cast<double>(work); }
double expected(const BatchPace& pace, std::int64_t work) { return pace.overhead() + pace.seconds_of(work); }

constexpr std::int64_t kSmall = 1'000, kLarge = 100'000'000;

TEST(BatchPace, WorkGrowsWithNonzerosAndColumns) {
  BatchShape shape;
  shape.rows = 10, shape.cols = 20, shape.nnz = 100;
  EXPECT_EQ(work_of(shape), 200 + 30);
  shape.columns = 8;
  EXPECT_EQ(work_of(shape), 900 + 240);
}

TEST(BatchPace, OneLargeBatchTellsOfOthers) {
  BatchPace pace;
  pace.observe(kLarge, true_seconds(kLarge));
  EXPECT_NEAR(expected(pace, kLarge), true_seconds(kLarge), 1e-3);
  EXPECT_NEAR(expected(pace, 4 * kLarge), true_seconds(4 * kLarge), 5e-3);
  EXPECT_LT(expected(pace, kSmall), 2e-3);
}

TEST(BatchPace, ManySmallOnesLeaveTheTimeOfLargeOnes) {
  BatchPace pace;
  pace.observe(kLarge, true_seconds(kLarge));
  for (int i = 0; i < 100; ++i) pace.observe(kSmall, true_seconds(kSmall));
  EXPECT_NEAR(expected(pace, kSmall), true_seconds(kSmall), 1e-5);
  EXPECT_NEAR(expected(pace, kLarge), true_seconds(kLarge), 1e-2);
  for (int i = 0; i < 100; ++i) pace.observe(kLarge, true_seconds(kLarge));
  EXPECT_NEAR(expected(pace, kSmall), true_seconds(kSmall), 1e-5);
}

TEST(BatchPace, FollowsAFasterMachine) {
  BatchPace pace;
  const auto seconds = [](std::int64_t work) { return 3e-4 + 1e-11 * static_cast<double>(work); };
  for (int i = 0; i < 200; ++i)
    for (const std::int64_t work : {std::int64_t{1000}, std::int64_t{2'000'000}, std::int64_t{1'000'000'000}})
      pace.observe(work, seconds(work));
  EXPECT_NEAR(expected(pace, 1000), seconds(1000), 2e-5);
  EXPECT_NEAR(expected(pace, 1'000'000'000), seconds(1'000'000'000), 1e-3);
}

TEST(BatchPace, OneThatWasHeldUpCountsLittle) {
  BatchPace pace;
  pace.observe(kLarge, true_seconds(kLarge));
  pace.observe(kLarge, 1e3);
  EXPECT_LT(expected(pace, kLarge), 2 * true_seconds(kLarge));
  for (int i = 0; i < 20; ++i) pace.observe(kSmall, true_seconds(kSmall));
  pace.observe(kSmall, 1e3);
  EXPECT_LT(expected(pace, kSmall), 2 * true_seconds(kSmall));
}

}  // namespace
}  // namespace shardmat::serve
