#include "comm/shared_gpu/rank_groups.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardmat {
namespace {

using Ranks = std::vector<int>;

TEST(RankGroups, AreConsecutiveAndEven) {
  EXPECT_EQ(owners_of_places(std::vector<std::string>(4, "a"), Ranks(4, 2)), (Ranks{0, 0, 2, 2}));
  EXPECT_EQ(owners_of_places(std::vector<std::string>(7, "a"), Ranks(7, 3)), (Ranks{0, 0, 2, 2, 4, 4, 4}));
  EXPECT_EQ(owners_of_places(std::vector<std::string>(3, "a"), Ranks(3, 1)), (Ranks{0, 0, 0}));
}

TEST(RankGroups, NeedNoFeedersIfThereAreEnoughDevices) {
  EXPECT_EQ(owners_of_places(std::vector<std::string>(3, "a"), Ranks(3, 8)), (Ranks{0, 1, 2}));
}

TEST(RankGroups, StayInTheirPlace) {
  // Two hosts with ranks in turn, 2 and 1 devices.
  EXPECT_EQ(owners_of_places({"a", "b", "a", "b", "a", "b"}, {2, 1, 2, 1, 2, 1}), (Ranks{0, 1, 2, 1, 2, 1}));
  // Each rank sees one of two GPUs of a host.
  EXPECT_EQ(owners_of_places({"a 0", "a 0", "a 1", "a 1"}, Ranks(4, 1)), (Ranks{0, 0, 2, 2}));
}

}  // namespace
}  // namespace shardmat
