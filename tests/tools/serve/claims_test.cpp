// In which order work on the same things may begin.
#include "tools/serve/ranks/claims.h"

#include <gtest/gtest.h>

namespace shardmat::serve {
namespace {

Claim matrix(std::uint64_t number, bool writes) { return {Claim::Kind::matrix, number, writes}; }
Claim vector(std::uint64_t number, bool writes) { return {Claim::Kind::vector, number, writes}; }

TEST(Claims, ReadersWaitForEarlierWritersOnly) {
  Claims claims;
  claims.add(1, {vector(7, false)});
  claims.add(2, {vector(7, false)});
  claims.add(3, {vector(7, true)});
  claims.add(4, {vector(7, false)});
  EXPECT_TRUE(claims.may_begin(1));
  EXPECT_TRUE(claims.may_begin(2));
  EXPECT_FALSE(claims.may_begin(3));
  EXPECT_FALSE(claims.may_begin(4));
  claims.remove(2);
  EXPECT_FALSE(claims.may_begin(3));
  claims.remove(1);
  EXPECT_TRUE(claims.may_begin(3));
  EXPECT_FALSE(claims.may_begin(4));
  claims.remove(3);
  EXPECT_TRUE(claims.may_begin(4));
}

TEST(Claims, WorkOnOtherThingsDoesNotWait) {
  Claims claims;
  claims.add(1, {matrix(7, true)});
  claims.add(2, {vector(7, true), matrix(8, false)});
  claims.add(3, {});
  claims.add(4, {matrix(7, false), vector(9, true)});
  EXPECT_TRUE(claims.may_begin(2));
  EXPECT_TRUE(claims.may_begin(3));
  EXPECT_FALSE(claims.may_begin(4));
  claims.remove(1);
  claims.remove(1);
  EXPECT_TRUE(claims.may_begin(4));
  EXPECT_TRUE(claims.may_begin(5));
}

}  // namespace
}  // namespace shardmat::serve
