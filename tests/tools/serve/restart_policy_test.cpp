#include "tools/serve/ranks/restart_policy.h"

#include <gtest/gtest.h>

namespace shardmat::serve {
namespace {

TEST(RestartPolicy, DelaysGrowAndEnd) {
  RestartPolicy policy(9, 0.5);
  for (const double delay : {0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0}) EXPECT_EQ(policy.lost(100), delay);
  EXPECT_EQ(policy.lost(100), std::nullopt);
}

TEST(RestartPolicy, TenGoodSecondsBeginAnew) {
  RestartPolicy policy(2, 0.5);
  EXPECT_EQ(policy.lost(0), 0);
  policy.ready(1);
  EXPECT_EQ(policy.lost(10.9), 0.5);
  policy.ready(12);
  EXPECT_EQ(policy.lost(22), 0);
}

TEST(RestartPolicy, TenMinutesAreForgotten) {
  RestartPolicy policy(1, 0.5);
  EXPECT_EQ(policy.lost(0), 0);
  EXPECT_EQ(policy.lost(599), std::nullopt);
  EXPECT_EQ(policy.lost(601), 0);
  EXPECT_EQ(RestartPolicy(0, 1).lost(0), std::nullopt);
}

}  // namespace
}  // namespace shardmat::serve
