// What conjugate gradients with one sum an iteration make of the sums: the next factors, a direction begun anew, an end.
#include "kernels/krylov/single_reduction_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace shardmat::krylov {
namespace {

constexpr double kRoundoff = 0x1p-53;

/// Of one column, after an update by alpha = 2 along z + 7·(the direction before) that made r·z a quarter: the next beta is
/// ¼.
struct Column {
  double sums[3] = {4, 4, 0};  ///< r·z, the square of the norm, z·A·z
  double rz_before = 16, alpha = 2, beta = 7;
  double below = 0, above = 100, norm = 0, history[4] = {}, coefficients[8] = {};
  std::int64_t most_iterations = 10, iterations = 0;
  Reason reason = Reason::none;

  /// `zaz`: z·A·z; β²·(p·A·p before) is ½.
  void note(double zaz) {
    sums[2] = zaz;
    const Monitor monitor{1, 4, &below, &above, &most_iterations, &norm, history, coefficients, &iterations, &reason};
    SingleReductionNote{{}, {sums, sums + 1, sums + 2, &rz_before, &alpha, &beta}, monitor, kRoundoff}.finish(0, {});
  }
};

TEST(SingleReduction, FindsTheNextFactors) {
  Column column;
  column.note(1.5);
  EXPECT_EQ(column.reason, Reason::none);
  EXPECT_EQ(column.iterations, 1);
  EXPECT_EQ(column.norm, 2);
  EXPECT_EQ(column.coefficients[0], 2);
  EXPECT_EQ(column.coefficients[4], 7);
  EXPECT_EQ(column.beta, 0.25);
  EXPECT_EQ(column.alpha, 4 / (1.5 - 0.5));
  column.note(1.5);
  EXPECT_EQ(column.coefficients[1], 4);
  EXPECT_EQ(column.coefficients[5], 0.25);
}

TEST(SingleReduction, BeginsADirectionAnewWhereRoundingLeavesNothing) {
  for (const double zaz : {0.5, 0.5 + 10 * kRoundoff, 0.5 - 10 * kRoundoff}) {
    Column column;
    column.note(zaz);
    EXPECT_EQ(column.reason, Reason::none);
    EXPECT_EQ(column.coefficients[4], 7);
    EXPECT_EQ(column.beta, 0);
    EXPECT_EQ(column.alpha, 4 / zaz);
  }
}

TEST(SingleReduction, TellsWhyItCannotGoOn) {
  const auto reason_of = [](double zaz, double rz, double square) {
    Column column;
    column.sums[0] = rz, column.sums[1] = square;
    column.note(zaz);
    EXPECT_EQ(column.alpha, 2);
    return column.reason;
  };
  EXPECT_EQ(reason_of(0.4, 4, 4), Reason::diverged_indefinite_matrix);
  EXPECT_EQ(reason_of(-1, 4, 4), Reason::diverged_indefinite_matrix);
  EXPECT_EQ(reason_of(1.5, -4, 4), Reason::diverged_indefinite_preconditioner);
  EXPECT_EQ(reason_of(std::nan(""), 4, 4), Reason::diverged_nan);
  EXPECT_EQ(reason_of(1.5, 4, std::numeric_limits<double>::infinity()), Reason::diverged_nan);
  EXPECT_EQ(reason_of(-1, 0, 0), Reason::converged);
}

}  // namespace
}  // namespace shardmat::krylov
