// What conjugate gradients know of r·M·r at a start that forms no M·r (kernels/krylov/residual.h).
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/krylov/residual.h"

namespace shardmat::krylov {
namespace {

/// r·M·r after a residual whose square is `now`, where that before had r·M·r = rz and the square `before`.
template <class T>
double late_natural(double rz, double before, double now) {
  double squares = before, share = -1;
  LateResidualSums<T>{nullptr, &rz, &squares, &share}.finish(0, Sums<1>{{now}});
  EXPECT_EQ(rz, 0);  // so that the sum over the ranks may add it
  EXPECT_EQ(squares, now);
  LateNaturalNorm{{}, &rz, &squares, &share}.finish(0, Sums<0>{});
  EXPECT_EQ(squares, now);
  return rz;
}

TEST(LateResidual, TakesTheShareOfTheResidualBefore) {
  EXPECT_EQ(late_natural<double>(8, 2, 3), 12);
  EXPECT_EQ(late_natural<float>(8, 2, 3), 12);
  EXPECT_EQ(late_natural<double>(8e-250, 2e-250, 3e-250), 12e-250);
  EXPECT_EQ(late_natural<float>(8e-50, 2e-50, 3e-50), 12e-50);
}

TEST(LateResidual, KnowsNoShareOfAResidualThatWasTooSmallOrWithoutADefiniteM) {
  for (const double rz : {0.0, -1.0, std::nan("")}) EXPECT_TRUE(std::isnan(late_natural<double>(rz, 2, 3))) << rz;
  EXPECT_TRUE(std::isnan(late_natural<double>(4, 0, 3)));  // as before the first residual of all
  EXPECT_TRUE(std::isnan(late_natural<double>(4, std::nan(""), 3)));
  EXPECT_TRUE(std::isnan(late_natural<double>(1e-281, 1e-281, 1e-281)));
  EXPECT_TRUE(std::isnan(late_natural<float>(1e-61, 1e-61, 1e-61)));
  EXPECT_EQ(late_natural<double>(1e-61, 1e-61, 1e-61), 1e-61);
}

TEST(LateResidual, OfZeroIsZero) {
  EXPECT_EQ(late_natural<double>(8, 2, 0), 0);
  EXPECT_EQ(late_natural<double>(0, 0, 0), 0);  // whatever was before
}

}  // namespace
}  // namespace shardmat::krylov
