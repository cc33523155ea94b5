// Several matrices together, split over the ranks and each whole on one.
#include "runtime/run/several.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/context/context.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

SeveralOptions options_for(SeveralPlacement placement) {
  SeveralOptions options;
  options.matrices = {"poisson27:n=6", "elasticity:n=7", "rmat:scale=8", "poisson27:n=6", "banded:n=50"};
  options.placement = placement;
  options.each.verify = true;
  options.each.iterations = 3;
  return options;
}

void multiplies_all(BackendChoice backend) {
  Context context(world(), backend);
  for (const SeveralPlacement placement : {SeveralPlacement::automatic, SeveralPlacement::split, SeveralPlacement::whole})
    for (const std::int64_t columns : {1, 5}) {
      SeveralOptions options = options_for(placement);
      options.each.load.right_hand_sides = columns;
      const SeveralReport report = multiply_several(context, options);
      ASSERT_EQ(report.items.size(), 5u);
      EXPECT_TRUE(report.passed());
      EXPECT_GT(report.iteration.median, 0);
      double nnz = 0;
      for (const SeveralItem& item : report.items) {
        ASSERT_TRUE(item.verification.has_value());
        EXPECT_EQ(item.verification->rows_checked, item.rows) << item.matrix;
        EXPECT_FALSE(item.kernel.empty());
        if (report.placement == "whole") {
          EXPECT_EQ(item.exchange, "none");
          EXPECT_LT(item.rank, world().size());
        }
        nnz += static_cast<double>(item.nnz);
      }
      EXPECT_DOUBLE_EQ(report.rank_nnz.mean * world().size(), nnz);
      if (placement == SeveralPlacement::whole) {
        EXPECT_EQ(report.placement, "whole");
        EXPECT_EQ(report.rank_nnz.max, world().size() == 1 ? nnz : static_cast<double>(report.items[1].nnz));  // the largest
      }
      EXPECT_EQ(report.predicted_whole > 0, placement == SeveralPlacement::automatic);
      EXPECT_NE(to_json(report).find("\"placement\""), std::string::npos);
      EXPECT_NE(to_text(report).find("passed"), std::string::npos);
    }
}

void iterates_alike(BackendChoice backend) {
  Context context(world(), backend);
  SeveralReport reports[2];
  for (const bool whole : {false, true}) {
    SeveralOptions options = options_for(whole ? SeveralPlacement::whole : SeveralPlacement::split);
    options.each.mode = Mode::power;
    options.each.iterations = 20;
    reports[whole] = multiply_several(context, options);
  }
  for (std::size_t i = 0; i < reports[0].items.size(); ++i) {
    const double split = reports[0].items[i].estimate.eigenvalue, whole = reports[1].items[i].estimate.eigenvalue;
    EXPECT_NE(split, 0);
    EXPECT_NEAR(whole, split, 1e-10 * std::abs(split)) << reports[0].items[i].matrix;
  }
}

void runs_on_gpus(void (*check)(BackendChoice)) {
  if (const std::string why_not = why_no_gpus(); !why_not.empty()) GTEST_SKIP() << why_not;
  check(BackendChoice::cuda);
}

TEST(Several, MultipliesAll) { multiplies_all(BackendChoice::host); }
TEST(Several, IteratesAlike) { iterates_alike(BackendChoice::host); }
TEST(GpuSeveral, MultipliesAll) { runs_on_gpus(multiplies_all); }
TEST(GpuSeveral, IteratesAlike) { runs_on_gpus(iterates_alike); }
TEST(MultiGpuSeveral, MultipliesAll) { runs_on_gpus(multiplies_all); }
TEST(MultiGpuSeveral, IteratesAlike) { runs_on_gpus(iterates_alike); }

TEST(Several, RefusesWhatIsForOneMatrix) {
  Context context(world(), BackendChoice::host);
  const auto message = [&](auto change) {
    SeveralOptions options = options_for(SeveralPlacement::automatic);
    change(options);
    return error_of(ErrorKind::usage, [&] { multiply_several(context, options); });
  };
  EXPECT_NE(message([](SeveralOptions& o) { o.each.output = "y.h5"; }).find("y is written for one matrix"),
            std::string::npos);
  EXPECT_NE(message([](SeveralOptions& o) { o.each.beta = 1; }).find("beta must be 0"), std::string::npos);
  EXPECT_NE(message([](SeveralOptions& o) { o.each.x = "x.npy"; }).find("x.npy"), std::string::npos);
  EXPECT_NE(message([](SeveralOptions& o) { o.matrices.clear(); }).find("no matrix to multiply"), std::string::npos);
  EXPECT_NE(message([](SeveralOptions& o) {
              o.matrices[2] = "random:n=20,cols=30";
              o.each.mode = Mode::power;
            }).find("20 × 30"),
            std::string::npos);
  SeveralOptions options = options_for(SeveralPlacement::whole);
  options.matrices[3] = "/nowhere/bar.h5";
  EXPECT_NE(error_of(ErrorKind::input, [&] { multiply_several(context, options); }).find("/nowhere/bar.h5"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorKind::usage, [] { parse_several_placement("half"); }).find("auto, split or whole"),
            std::string::npos);
}

}  // namespace
}  // namespace shardmat
