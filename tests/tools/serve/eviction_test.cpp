// Which matrices leave so that another one has room.
#include "tools/serve/ranks/eviction.h"

#include <gtest/gtest.h>

namespace shardmat::serve {
namespace {

Matrix matrix(double last_used, const std::vector<std::int64_t>& bytes) {
  Matrix one;
  one.last_used = last_used, one.state = MatrixState::ready;
  for (const std::int64_t of_rank : bytes) one.ranks.emplace_back().bytes = of_rank;
  return one;
}

TEST(Eviction, TheLeastRecentlyUsedGoUntilEveryRankHasItsBytes) {
  Matrix new_one = matrix(3, {10, 10}), old = matrix(1, {10, 0}), middle = matrix(2, {5, 10});
  const std::vector<Matrix*> all{&new_one, &old, &middle};
  EXPECT_EQ(to_evict(all, {1, 0}), std::vector<Matrix*>{&old});
  EXPECT_EQ(to_evict(all, {10, 0}), std::vector<Matrix*>{&old});
  EXPECT_EQ(to_evict(all, {6, 1}), (std::vector<Matrix*>{&old, &middle}));
  EXPECT_EQ(to_evict(all, {16, 11}), (std::vector<Matrix*>{&old, &middle, &new_one}));
  EXPECT_EQ(bytes_on(all, 0), 25);
}

TEST(Eviction, NothingGoesInVain) {
  Matrix none_there = matrix(1, {10, 0}), small = matrix(2, {1, 1}), large = matrix(3, {9, 9}), last = matrix(4, {9, 9});
  EXPECT_EQ(to_evict({&last, &large, &small, &none_there}, {0, 9}), std::vector<Matrix*>{&large});
  EXPECT_EQ(to_evict({&last, &large, &small, &none_there}, {10, 10}), (std::vector<Matrix*>{&small, &large}));
  Matrix one = matrix(1, {10, 10});
  EXPECT_TRUE(to_evict({&one}, {11, 0}).empty());
  EXPECT_TRUE(to_evict({&one}, {1, 11}).empty());
  EXPECT_TRUE(to_evict({}, {1, 1}).empty());
}

}  // namespace
}  // namespace shardmat::serve
