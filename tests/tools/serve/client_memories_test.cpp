// Memories of clients: how much there may be, and when one is over.
#include "tools/serve/state/client_memories.h"

#include <gtest/gtest.h>

namespace shardmat::serve {
namespace {

constexpr std::uint64_t kPage = 4096, kMost = 16 * kPage;

TEST(ClientMemories, TogetherTheyHaveABound) {
  std::vector<std::uint64_t> gone;
  ClientMemories memories(kMost, [&](std::uint64_t number) { gone.push_back(number); });
  const auto code = [&](std::uint64_t bytes) {
    const auto made = memories.make(bytes);
    const auto* problem = std::get_if<Problem>(&made);
    return problem == nullptr ? "" : problem->code;
  };
  auto first = std::get<1>(memories.make(5));
  EXPECT_EQ(first->bytes() % kPage, 0u);
  EXPECT_EQ(memories.used_bytes(), first->bytes());
  EXPECT_EQ(code(kMost + 1), "memory_too_large");
  EXPECT_EQ(code(std::uint64_t{1} << 63), "memory_too_large");
  EXPECT_EQ(code(kMost), "memory_full");
  auto second = std::get<1>(memories.make(kMost - first->bytes()));
  EXPECT_NE(first->number(), second->number());
  EXPECT_EQ(memories.used_bytes(), kMost);
  EXPECT_EQ(code(1), "memory_full");
  EXPECT_EQ(memories.all().size(), 2u);
  const std::uint64_t number = first->number();
  const auto product = std::exchange(first, nullptr);  // what uses it keeps it
  EXPECT_TRUE(gone.empty());
  EXPECT_EQ(memories.count(), 2u);
  second.reset();
  EXPECT_EQ(gone, std::vector{number + 1});
  EXPECT_EQ(memories.used_bytes(), product->bytes());
  EXPECT_EQ(code(kMost - product->bytes()), "");
}

}  // namespace
}  // namespace shardmat::serve
