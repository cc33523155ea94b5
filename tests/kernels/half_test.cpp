// Values of 16 bits: every one there is, and the nearest of any other.
#include "kernels/base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace shardmat {
namespace {

template <class H>
H of_bits(int bits) {
  H h;
  h.bits = static_cast<std::uint16_t>(bits);
  return h;
}

template <class H>
class HalfTest : public testing::Test {};
using Halves = testing::Types<F16, Bf16>;
TYPED_TEST_SUITE(HalfTest, Halves);

TYPED_TEST(HalfTest, EveryValueComesBack) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const auto h = of_bits<TypeParam>(bits);
    const auto value = static_cast<double>(h);
    if (std::isnan(value)) EXPECT_TRUE(std::isnan(static_cast<double>(TypeParam(value)))) << bits;
    else EXPECT_EQ(TypeParam(value).bits, bits);
  }
}

/// Between neighbours: the nearer, at the middle the one whose last bit is 0.
TYPED_TEST(HalfTest, RoundsToNearestEven) {
  for (int bits = 0; std::isfinite(static_cast<double>(of_bits<TypeParam>(bits + 1))); ++bits) {
    const auto low = static_cast<double>(of_bits<TypeParam>(bits)), high = static_cast<double>(of_bits<TypeParam>(bits + 1));
    ASSERT_LT(low, high) << bits;
    const double middle = low + (high - low) / 2;
    for (const double sign : {1.0, -1.0}) {
      const int of_sign = sign < 0 ? 0x8000 : 0;
      EXPECT_EQ(TypeParam(sign * middle).bits, of_sign | (bits % 2 == 0 ? bits : bits + 1)) << bits;
      EXPECT_EQ(TypeParam(sign * std::nextafter(middle, 0)).bits, of_sign | bits) << bits;
      EXPECT_EQ(TypeParam(sign * std::nextafter(middle, 1e300)).bits, of_sign | (bits + 1)) << bits;
    }
  }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(F16(1.0).bits, 0x3c00);
  EXPECT_EQ(F16(65504.0).bits, 0x7bff);
  EXPECT_EQ(F16(65519.99).bits, 0x7bff);
  EXPECT_EQ(F16(65520.0).bits, 0x7c00);  // infinite
  EXPECT_EQ(F16(0x1p-24).bits, 0x0001);
  EXPECT_EQ(F16(0x1p-25).bits, 0x0000);  // a tie goes to the even neighbour
  EXPECT_EQ(F16(1e-300).bits, 0x0000);
  EXPECT_EQ(Bf16(1.0).bits, 0x3f80);
  EXPECT_EQ(Bf16(-2.5).bits, 0xc020);
  EXPECT_EQ(Bf16(std::numeric_limits<double>::infinity()).bits, 0x7f80);
  EXPECT_EQ(std::bit_cast<float>(static_cast<std::uint32_t>(Bf16(3.14159).bits) << 16), static_cast<float>(Bf16(3.14159)));
}

}  // namespace
}  // namespace shardmat
