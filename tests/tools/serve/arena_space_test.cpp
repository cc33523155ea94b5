#include "tools/serve/state/arena_space.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace shardmat::serve {
namespace {

/// A range that is held.
std::unique_ptr<ArenaSpace::Lease> take(ArenaSpace& space, std::uint64_t bytes) {
  auto lease = space.reserve(bytes);
  if (lease) lease->hold(bytes);
  return lease;
}

TEST(ArenaSpace, RangesAreApartAndComeBack) {
  ArenaSpace space(1 << 16);
  std::mt19937 random(3);
  std::vector<std::pair<std::unique_ptr<ArenaSpace::Lease>, std::uint64_t>> taken;
  for (int round = 0; round < 5000; ++round) {
    if (random() % 2 == 0) {
      const std::uint64_t bytes = random() % 5000;
      if (auto lease = take(space, bytes)) taken.emplace_back(std::move(lease), bytes);
    } else if (!taken.empty()) {
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(random() % taken.size()));
    }
    std::map<std::uint64_t, std::uint64_t> ends;
    for (const auto& [lease, bytes] : taken) ends[lease->offset()] = lease->offset() + bytes;
    std::uint64_t before = 0;
    for (const auto& [offset, end] : ends) {
      ASSERT_LE(before, offset);
      ASSERT_EQ(offset % 64, 0u);
      before = end;
    }
    ASSERT_LE(before, space.bytes());
  }
  taken.clear();
  EXPECT_EQ(space.used(), 0u);
  EXPECT_NE(take(space, 1 << 16), nullptr);
}

TEST(ArenaSpace, LowRangesAreTakenFirst) {
  ArenaSpace space(1024);
  auto a = take(space, 64), b = take(space, 64), c = take(space, 64);
  EXPECT_EQ(c->offset(), 128u);
  b.reset();
  EXPECT_EQ(take(space, 10)->offset(), 64u);
  EXPECT_EQ(take(space, 0)->offset(), 64u);
}

TEST(ArenaSpace, WhatIsSetAsideGoesToOthersBeforeWhatIsReserved) {
  ArenaSpace space(1024);
  std::vector<std::shared_ptr<ArenaSpace::Lease>> kept;
  space.make_room = [&] {
    if (kept.empty()) return false;
    kept.erase(kept.begin());
    return true;
  };
  for (int i = 0; i < 4; ++i) {
    kept.push_back(take(space, 128));
    kept.back()->set_aside();
  }
  const auto being_sent = kept.front();
  EXPECT_EQ(space.used(), 0u);
  auto reserved = space.reserve(256);
  EXPECT_EQ(take(space, 256)->offset(), 768u);
  EXPECT_EQ(kept.size(), 4u);
  EXPECT_EQ(take(space, 320)->offset(), 128u);  // not what is being sent; three go for it
  EXPECT_EQ(kept.size(), 0u);
  EXPECT_TRUE(reserved->hold(256));
  auto slow = space.reserve(128);
  EXPECT_NE(space.keep(256), nullptr);
  EXPECT_EQ(space.keep(1024), nullptr);
  EXPECT_TRUE(slow->hold(128));  // it was not taken away
  EXPECT_EQ(space.used(), 384u);
}

TEST(ArenaSpace, WhatIsReservedAndNotHeldGoesToOthers) {
  ArenaSpace space(1024);
  auto slow = space.reserve(1024);
  EXPECT_EQ(space.used(), 0u);
  ASSERT_TRUE(slow->hold(64));
  auto quick = take(space, 512);
  ASSERT_NE(quick, nullptr);
  EXPECT_EQ(space.used(), 64u + 512u);
  EXPECT_FALSE(slow->hold(128));  // the place behind it is taken
  quick.reset();
  EXPECT_TRUE(slow->hold(128));
  EXPECT_TRUE(slow->hold(64));
  EXPECT_EQ(space.used(), 128u);
  auto one = space.reserve(512), two = space.reserve(512);  // the second one has the place of the first
  ASSERT_NE(two, nullptr);
  EXPECT_FALSE(one->hold(1));
  EXPECT_TRUE(two->hold(512));
  slow.reset(), one.reset(), two.reset();
  EXPECT_EQ(space.used(), 0u);
  EXPECT_NE(take(space, 1024), nullptr);
}

TEST(ArenaSpace, WhatDoesNotFitIsRefused) {
  ArenaSpace space(1024);
  EXPECT_EQ(take(space, 1025), nullptr);
  EXPECT_EQ(take(space, ~std::uint64_t{0}), nullptr);
  const auto all = take(space, 1024);
  EXPECT_EQ(take(space, 1), nullptr);
}

}  // namespace
}  // namespace shardmat::serve
