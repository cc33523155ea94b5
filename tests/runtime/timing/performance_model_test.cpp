#include "runtime/timing/measure_performance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

/// 10 µs and 1 ns a nonzero; two exchanges among four ranks.
PerformanceModel model() {
  PerformanceModel m;
  m.product = ProductCost(10e-6, 1e-9);
  m.split_latency = 3e-6;
  m.exchanges = {{4, "allgather", 5e-6, 1e-11}, {4, "halo", 8e-6, 1e-10}};
  m.measured_ranks = 4;
  return m;
}

PartitionQuality quality(std::int64_t nnz, std::int64_t boundary, std::int64_t halo) {
  PartitionQuality q;
  q.nnz_max = nnz, q.boundary_nnz_max = boundary, q.halo_max = halo, q.allgather_max = 1'000'000, q.neighbours_max = 2;
  return q;
}

TEST(PerformanceModel, OneRankIsTheProduct) {
  const Forecast f = forecast(model(), quality(90'000, 0, 0), 1);
  EXPECT_DOUBLE_EQ(f.iteration, 100e-6);
  EXPECT_EQ(f.exchange, 0);
  EXPECT_EQ(f.moved_by, "none");
}

TEST(PerformanceModel, TheExchangeHidesBehindTheInterior) {
  const Forecast f = forecast(model(), quality(90'000, 1'000, 1'000), 4);
  EXPECT_TRUE(f.overlapped);
  EXPECT_EQ(f.moved_by, "halo");
  EXPECT_DOUBLE_EQ(f.exchange, 8e-6 + 8000 * 1e-10);
  EXPECT_DOUBLE_EQ(f.iteration, 103e-6);
  PerformanceModel waits = model();
  waits.overlaps = waits.overlaps_peer = false;
  EXPECT_DOUBLE_EQ(forecast(waits, quality(90'000, 1'000, 1'000), 4).iteration, 100e-6 + 8e-6 + 8000 * 1e-10);
  const Forecast late = forecast(model(), quality(2'000, 1'000, 100'000), 4);  // 12 µs of product, 88 µs of exchange
  EXPECT_DOUBLE_EQ(late.iteration, late.exchange + 11e-6);
}

TEST(PerformanceModel, WithPeerRowsOfOneProductWait) {
  PerformanceModel m = model();
  m.exchanges = {{4, "peer", 8e-6, 1e-10}};
  EXPECT_DOUBLE_EQ(forecast(m, quality(90'000, 1'000, 1'000), 4).iteration, 100e-6);
  const Forecast late = forecast(m, quality(90'000, 9'000, 200'000), 4);  // 168 µs of exchange
  EXPECT_DOUBLE_EQ(late.iteration, late.exchange + 19e-6);
}

TEST(PerformanceModel, ProductsBetweenPointsLieOnLines) {
  const ProductCost cost({{100, 3e-6}, {200, 4e-6}, {1000, 20e-6}});
  EXPECT_EQ(cost(0), 0);
  EXPECT_DOUBLE_EQ(cost(50), 2.5e-6);
  EXPECT_DOUBLE_EQ(cost(100), 3e-6);
  EXPECT_DOUBLE_EQ(cost(150), 3.5e-6);
  EXPECT_DOUBLE_EQ(cost(600), 12e-6);
  EXPECT_DOUBLE_EQ(cost(2000), 40e-6);
  EXPECT_DOUBLE_EQ(ProductCost({{100, 5e-6}, {200, 4e-6}})(150), 4e-6);  // noise: fewer nonzeros take no longer
  EXPECT_DOUBLE_EQ(ProductCost({{100, 1e-6}, {200, 4e-6}})(10), 1e-7);   // nor does each take less
  EXPECT_DOUBLE_EQ(ProductCost({{100, 1e-6}})(300), 3e-6);
  EXPECT_EQ(ProductCost()(300), 0);
}

TEST(PerformanceModel, WhatOneRankSendsMayTakeLongest) {
  PartitionQuality q = quality(90'000, 50'000, 10'000);
  EXPECT_DOUBLE_EQ(forecast(model(), q, 4).exchange, 8e-6 + 80'000 * 1e-10);
  q.sent_max = 12'000;
  EXPECT_DOUBLE_EQ(forecast(model(), q, 4).exchange, 8e-6 + 96'000 * 1e-10);
}

TEST(PerformanceModel, FewBytesHaveARateOfTheirOwn) {
  const ExchangeCost cost{2, "halo", 10e-6, 1e-11, 1000, 1e-9};
  EXPECT_DOUBLE_EQ(cost.seconds(0), 10e-6);
  EXPECT_DOUBLE_EQ(cost.seconds(500), 10.5e-6);
  EXPECT_DOUBLE_EQ(cost.seconds(101'000), 11e-6 + 1e-6);
}

TEST(PerformanceModel, OnlyPeerMayOverlap) {
  PerformanceModel m = model();
  m.overlaps = false;
  m.exchanges = {{2, "halo", 8e-6, 0}, {2, "peer", 9e-6, 0}, {4, "halo", 8e-6, 0}};
  const PartitionQuality q = quality(90'000, 1'000, 1'000);
  const Forecast two = forecast(m, q, 2);
  EXPECT_EQ(two.moved_by, "peer");  // slower, but hidden
  EXPECT_TRUE(two.overlapped);
  EXPECT_DOUBLE_EQ(two.iteration, 100e-6);
  const Forecast four = forecast(m, q, 4);
  EXPECT_FALSE(four.overlapped);
  EXPECT_DOUBLE_EQ(four.iteration, 108e-6);
  m.overlaps_peer = false;
  EXPECT_EQ(forecast(m, q, 2).moved_by, "halo");
}

TEST(PerformanceModel, LinksAreThoseBetweenTheFewestRanksThatAreEnough) {
  PerformanceModel m = model();
  m.exchanges = {{2, "halo", 1e-6, 0}, {4, "halo", 2e-6, 0}, {4, "peer", 3e-6, 0}, {8, "peer", 4e-6, 0}};
  m.measured_ranks = 8;
  const PartitionQuality q = quality(90'000, 50'000, 10'000);
  EXPECT_DOUBLE_EQ(forecast(m, q, 2).exchange, 1e-6);
  EXPECT_DOUBLE_EQ(forecast(m, q, 3).exchange, 2e-6);
  EXPECT_DOUBLE_EQ(forecast(m, q, 8).exchange, 4e-6);
  m.measured_ranks = 100;  // thought to be alike
  EXPECT_DOUBLE_EQ(forecast(m, q, 50).exchange, 4e-6);
}

/// The case that performance_model.h works out by hand: two hosts of two ranks.
PerformanceModel two_by_two() {
  PerformanceModel m;
  m.product = ProductCost({{1000, 100e-6}});
  m.exchanges = {{2, "halo", 5e-6, 1 / 10e9}, {2, "allgather", 5e-6, 1 / 10e9}, {2, "peer", 1e-6, 0}};
  m.measured_ranks = 2;
  m.network = Network{20e-6, 1e9};
  m.ranks_per_host = 2;
  m.overlaps = m.overlaps_peer = false;
  return m;
}

TEST(PerformanceModel, TwoByTwoByHand) {
  const PerformanceModel m = two_by_two();
  const PartitionQuality q = quality(1000, 900, 1000);  // its all-gather would take 3·20 µs + 8e6 B / 1e9 B/s
  const Forecast f = forecast(m, q, 4, {400, 1});
  EXPECT_EQ(f.moved_by, "halo");  // peers do not reach each other between hosts
  EXPECT_NEAR(f.exchange, 28.2e-6, 1e-15);
  EXPECT_NEAR(f.iteration, 128.2e-6, 1e-15);
  // Most bytes within the hosts: 7,992 bytes at 10 GB/s, 8 bytes between hosts.
  EXPECT_NEAR(forecast(m, q, 4, {1, 1}).exchange, 25e-6 + 7992 / 10e9, 1e-15);
  EXPECT_NEAR(forecast(m, q, 4, {400, 3}).exchange, 65e-6 + 3.2e-6, 1e-15);
}

TEST(PerformanceModel, TwoByTwoByHandWithEntriesThatCrossOnceForEachHost) {
  PerformanceModel m = two_by_two();
  const PartitionQuality q = quality(1000, 900, 1000);
  EXPECT_EQ(forecast(m, q, 4, {400, 1, 700, 1}).moved_by, "halo");  // 28.2 µs against 33.12
  const Forecast f = forecast(m, q, 4, {400, 2, 700, 1});
  EXPECT_EQ(f.moved_by, "two_level");
  EXPECT_NEAR(f.exchange, 33.12e-6, 1e-15);
  EXPECT_NEAR(f.iteration, 133.12e-6, 1e-15);
  // Few bytes between the hosts, most within: 7,992 and 8 bytes at 10 GB/s.
  EXPECT_NEAR(forecast(m, q, 4, {1, 2, 1, 1}).exchange, 30e-6 + 7992 / 10e9 + 8 / 10e9, 1e-15);
  EXPECT_NEAR(forecast(m, q, 6, {400, 3, 700, 2}).exchange, 50e-6 + 2.8e-6 + 0.32e-6, 1e-15);  // three hosts
  EXPECT_EQ(forecast(m, q, 4, {400, 2}).moved_by, "halo");                                     // not counted
  m.ranks_per_host = 1;                                                                        // no two ranks share a host
  EXPECT_EQ(forecast(m, q, 4, {400, 3, 400, 3}).moved_by, "halo");
}

TEST(PerformanceModel, RanksOfOneHostHaveTheLinksThatWereMeasured) {
  PerformanceModel m = two_by_two();
  const PartitionQuality q = quality(1000, 900, 1000);
  EXPECT_EQ(forecast(m, q, 2).moved_by, "peer");
  m.ranks_per_host = 4;  // measured on two of them
  m.network.reset();
  EXPECT_NEAR(forecast(m, q, 4).iteration, 101e-6, 1e-15);
  EXPECT_THROW(forecast(m, q, 5), Error);
  m.ranks_per_host = 1;  // two measured ranks on one host say nothing of two hosts
  EXPECT_THROW(forecast(m, q, 2), Error);
  m.network = Network{20e-6, 1e9};
  EXPECT_NEAR(forecast(m, q, 2, {1000, 1}).exchange, 20e-6 + 8e-6, 1e-15);
}

TEST(PerformanceModel, AllGatherOverHostsGoesInARing) {
  PerformanceModel m = two_by_two();
  PartitionQuality q = quality(1000, 900, 1000);
  q.allgather_max = 1000;
  const Forecast f = forecast(m, q, 4, {1000, 9});
  EXPECT_EQ(f.moved_by, "allgather");
  EXPECT_NEAR(f.exchange, 3 * 20e-6 + 8e-6, 1e-15);
}

TEST(PerformanceModel, AnIterationWaitsForTheSlowestOfUnsteadyRanks) {
  PerformanceModel m = two_by_two();
  m.unsteadiness = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1.5};
  EXPECT_EQ(m.unsteady(1), 0);
  EXPECT_EQ(m.unsteady(4), 0);  // of the largest of four, half are below the quantile 0.84
  EXPECT_EQ(m.unsteady(16), 0.5);
  const PartitionQuality q = quality(1000, 900, 1000);
  EXPECT_NEAR(forecast(m, q, 16, {400, 1}).unsteady, 50e-6, 1e-15);
  EXPECT_NEAR(forecast(m, q, 16, {400, 1}).iteration, 178.2e-6, 1e-15);
  m.unsteadiness = {0.9, 1, 1.1};
  EXPECT_EQ(m.unsteady(1), 0);
  EXPECT_NEAR(m.unsteady(2), 0.1, 1e-15);
}

TEST(PerformanceModel, BoundaryRowsThatHoldMostWait) {
  const Forecast f = forecast(model(), quality(90'000, 50'000, 900'000), 4);
  EXPECT_FALSE(f.overlapped);
  EXPECT_EQ(f.moved_by, "allgather");  // 85 µs against 728
  EXPECT_DOUBLE_EQ(f.iteration, 100e-6 + 5e-6 + 8e6 * 1e-11);
}

TEST(PerformanceModel, BeyondTheRanksThatWereMeasured) {
  PerformanceModel m = model();
  EXPECT_NE(error_of(ErrorKind::usage, [&] { forecast(m, quality(1000, 0, 0), 5); }).find("between 5 ranks"),
            std::string::npos);
  m.network = Network{2e-6, 1e10};
  const Forecast f = forecast(m, quality(90'000, 50'000, 10'000), 64);
  EXPECT_EQ(f.moved_by, "halo");
  EXPECT_DOUBLE_EQ(f.exchange, 2 * 2e-6 + 80'000 / 1e10);
  m.entry_bytes = 8 * 32;
  EXPECT_DOUBLE_EQ(forecast(m, quality(90'000, 50'000, 10'000), 64).exchange, 2 * 2e-6 + 32 * 80'000 / 1e10);
}

TEST(PerformanceModel, H200IsNearWhatWasMeasuredThere) {
  constexpr std::int64_t kNnz = 449'455'096, kPlane = 256 * 256;  // poisson27:n=256, nearest neighbours in planes
  const PerformanceModel m = h200_model();
  EXPECT_NEAR(forecast(m, quality(kNnz, 0, 0), 1).iteration, 915e-6, 0.03 * 915e-6);
  EXPECT_NEAR(forecast(m, quality(kNnz / 2, kNnz / 256, kPlane), 2).iteration, 475e-6, 0.03 * 475e-6);
  EXPECT_NEAR(forecast(m, quality(kNnz / 4, kNnz / 128, 2 * kPlane), 4).iteration, 258e-6, 0.1 * 258e-6);
}

/// 50 rows of 20 nonzeros, then 1000 rows of one: parts of equal nonzeros have 2 to 1000 rows. Notes which rows are read.
class UnevenRows final : public RowSource {
 public:
  std::int64_t rows() const override { return 1050; }
  std::int64_t cols() const override { return 1050; }
  std::string name() const override { return "uneven"; }
  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    HostVector<std::int64_t> lengths;
    for (std::int64_t i = begin; i < end; ++i) lengths.push_back(i < 50 ? 20 : 1);
    return lengths;
  }
  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override {
    ranges.emplace_back(begin, end);
    HostCsr some;
    some.rows = end - begin, some.cols = cols();
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t k = 0; k < (i < 50 ? 20 : 1); ++k) some.col_idx.push_back((i + 50 * k) % cols());
      std::sort(some.col_idx.end() - (i < 50 ? 20 : 1), some.col_idx.end());
      some.row_ptr.push_back(std::ssize(some.col_idx));
    }
    some.values.resize(some.col_idx.size(), 1.0);
    return some;
  }

  mutable std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
};

TEST(PerformanceModel, OfUnequalPartsTheSlowestIsTimed) {
  if (world().size() > 1) GTEST_SKIP() << "for one rank";
  Context context(world(), BackendChoice::host);
  MatrixSource source;
  auto rows = std::make_unique<UnevenRows>();
  const auto& ranges = rows->ranges;
  source.rows = std::move(rows);
  LoadOptions load;
  load.plan.kernel = "csr_host";
  load.node_block_size = 1;  // no row is read to find it
  const ProductCost cost = measure_product_cost(context, source, load, 1.0);
  std::vector<std::int64_t> read;  // rows of each part
  for (const auto& [begin, end] : ranges) {
    EXPECT_GE(begin, 50);
    read.push_back(end - begin);
  }
  const std::vector<double> shares = {2000.0 / 64, 2000.0 / 16, 2000.0 / 4, 2000.0 / 2};
  ASSERT_EQ(read.size(), shares.size());
  for (std::size_t i = 0; i < read.size(); ++i) EXPECT_NEAR(static_cast<double>(read[i]), shares[i], 20);
  // The time is that of the slowest part, the nonzeros are those of the largest part.
  ASSERT_EQ(cost.points().size(), 5U);
  EXPECT_EQ(cost.points()[0].nnz, 40);
  EXPECT_EQ(cost.points()[3].nnz, 1000);
}

/// The rows of another source; notes which are read.
class NotedRows final : public RowSource {
 public:
  explicit NotedRows(const RowSource& source) : source_(source) {}
  std::int64_t rows() const override { return source_.rows(); }
  std::int64_t cols() const override { return source_.cols(); }
  std::string name() const override { return source_.name(); }
  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    return source_.row_lengths(begin, end);
  }
  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override {
    ranges.emplace_back(begin, end);
    return source_.read_rows(begin, end);
  }
  void visit_rows(std::int64_t begin, std::int64_t end, const std::function<void(const CsrView&)>& use) const override {
    ranges.emplace_back(begin, end);
    source_.visit_rows(begin, end, use);
  }

  mutable std::vector<std::pair<std::int64_t, std::int64_t>> ranges;

 private:
  const RowSource& source_;
};

TEST(PerformanceModel, PartsThatAreTimedHaveWholeNodes) {
  if (world().size() > 1) GTEST_SKIP() << "for one rank";
  Context context(world(), BackendChoice::host);
  const MatrixSource elasticity = open_matrix("elasticity:n=5", world());
  const std::int64_t rows = elasticity.rows->rows();
  for (const std::int64_t given : {0, 3}) {
    MatrixSource source;
    auto noted = std::make_unique<NotedRows>(*elasticity.rows);
    const auto& ranges = noted->ranges;
    source.rows = std::move(noted);
    LoadOptions load;
    load.plan.kernel = "csr_host";
    load.node_block_size = given;
    ASSERT_EQ(measure_product_cost(context, source, load, 1.0).points().size(), 5U);
    std::size_t parts = 0;
    for (const auto& [begin, end] : ranges) {
      if (end - begin == rows) continue;  // read to find the nodes
      ++parts;
      EXPECT_EQ(begin % 3, 0) << begin << " to " << end << " of " << rows;
      EXPECT_EQ(end % 3, 0) << begin << " to " << end << " of " << rows;
    }
    EXPECT_GE(parts, 4U);
  }
}

TEST(PerformanceModel, ProductCostIsTimedForSharesOfTheRows) {
  if (world().size() > 1) GTEST_SKIP() << "for one rank";
  Context context(world(), BackendChoice::host);
  const MatrixSource source = open_matrix("poisson27:n=16", world());
  LoadOptions load;
  load.plan.kernel = "csr_host";
  const double nnz = 97'336;  // (3·16 - 2)³
  const double shares[] = {1.0 / 64, 1.0 / 16, 1.0 / 4, 1.0 / 2};
  for (const double seconds : {1.0, 1e-4, 1e-12}) {
    const ProductCost cost = measure_product_cost(context, source, load, seconds);
    ASSERT_EQ(cost.points().size(), 5U);
    for (const std::size_t i : {0, 1, 2, 3}) {
      const double share = static_cast<double>(cost.points()[i].nnz) / nnz;
      EXPECT_GE(share, shares[i]);
      EXPECT_LE(share, shares[i] + 0.01);
      EXPECT_GT(cost.points()[i].seconds, 0);
      EXPECT_LE(cost.points()[i].seconds, cost.points()[i + 1].seconds);
    }
    EXPECT_NEAR(cost(static_cast<std::int64_t>(nnz)), seconds, 1e-9 * seconds);
  }
}

}  // namespace
}  // namespace shardmat
