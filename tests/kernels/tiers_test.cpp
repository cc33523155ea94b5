// Column tiers on the host: every nonzero has one place, with its column and row; tiers hold the columns with the most
// nonzeros.
#include "kernels/formats/tiers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/formats/upload.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/nonzeros.h"

namespace shardmat {
namespace {

using test::Nonzero;
using test::nonzeros_of;

struct Slot {
  int tier;
  std::int64_t row, column;  ///< -1: padding
  double value;
};

/// All slots, in the order of the arrays.
std::vector<Slot> slots_of(const TiersStorage& a) {
  const TiersPattern& p = *a.pattern;
  std::vector<Slot> all;
  int tier = 0;
  for (std::int64_t slice = 0; slice < p.slices(); ++slice) {
    while (slice >= p.first_slice[static_cast<std::size_t>(tier) + 1]) ++tier;
    for (auto b = static_cast<std::int64_t>(p.first_bundle[static_cast<std::size_t>(slice)]);
         b < p.first_bundle[static_cast<std::size_t>(slice) + 1]; ++b)
      for (std::int64_t lane = 0; lane < kTierLanes; ++lane)
        for (std::int64_t s = 0; s < kSlotsOfBundle; ++s) {
          const std::int64_t at = (b * kTierLanes + lane) * kSlotsOfBundle + s;
          Slot slot{tier, a.slot_rows.as<std::int32_t>()[slice * kTierLanes + lane], -1, a.values.as<double>()[at]};
          if (tier == p.tiers()) {
            slot.column = a.rest_columns.as<std::int32_t>()[at - p.bundles_of_tiers() * kTierLanes * kSlotsOfBundle];
          } else if (const int local = a.local.as<std::uint16_t>()[at]; local > 0) {
            slot.column = p.columns.as<std::int32_t>()[p.first_column[static_cast<std::size_t>(tier)] + local - 1];
          }
          all.push_back(slot);
        }
  }
  return all;
}

std::vector<Policy> layouts() {
  std::vector<Policy> all;
  for (const int columns : {1, 5, 1000})
    for (const int tiers : {1, 4, kMostTiers})
      for (const int least : {1, 3}) all.push_back(Policy{{"columns", columns}, {"tiers", tiers}, {"least", least}});
  return all;
}

TEST(Tiers, EveryNonzeroHasOnePlace) {
  Stream stream({Backend::host, 0});
  for (const test::NamedMatrix& zoo : test::matrix_zoo()) {
    SCOPED_TRACE(zoo.name);
    ConversionInput input(zoo.matrix.view(), ValueType::f64, stream);
    for (const Policy& layout : layouts()) {
      SCOPED_TRACE(layout.text());
      const auto storage = convert_tiers(input, layout);
      const auto& a = static_cast<const TiersStorage&>(*storage);
      EXPECT_EQ(storage->bytes, tiers_bytes(input, layout));
      std::vector<Nonzero> found;
      std::map<std::pair<std::int64_t, int>, std::int64_t> of_row;  // nonzeros of each row in each tier
      for (const Slot& slot : slots_of(a))
        if (slot.column >= 0) {
          found.emplace_back(slot.row, slot.column, slot.value);
          ++of_row[{slot.row, slot.tier}];
        } else {
          EXPECT_EQ(slot.value, 0);
        }
      std::sort(found.begin(), found.end());
      EXPECT_EQ(found, nonzeros_of(zoo.matrix));
      for (const auto& [place, count] : of_row)
        if (place.second < a.pattern->tiers()) {
          EXPECT_GE(count, layout.at("least"));
        }
    }
  }
}

/// Columns 0 … 99, of which column j has 100 - j nonzeros, and one row longer than a piece.
HostCsr falling_columns() {
  HostCsr m;
  m.rows = 100, m.cols = 500;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    const std::int64_t length = i == 0 ? m.cols : m.rows - i;
    for (std::int64_t j = 0; j < length; ++j) {
      m.col_idx.push_back(j);
      m.values.push_back(test::value_of(m.values.size()));
    }
    m.row_ptr.push_back(std::ssize(m.col_idx));
  }
  return m;
}

TEST(Tiers, HoldTheColumnsWithTheMostNonzeros) {
  Stream stream({Backend::host, 0});
  const HostCsr m = falling_columns();
  ConversionInput input(m.view(), ValueType::f64, stream);
  const auto storage = convert_tiers(input, Policy{{"columns", 30}, {"tiers", 10}, {"least", 1}});
  const auto& a = static_cast<const TiersStorage&>(*storage);
  // A fourth tier would have columns with few nonzeros each.
  EXPECT_EQ(a.pattern->first_column, (std::vector<std::int64_t>{0, 30, 60, 90}));
  for (std::int64_t j = 0; j < 90; ++j) EXPECT_EQ(a.pattern->columns.as<std::int32_t>()[j], j);
  for (const Slot& slot : slots_of(a))
    if (slot.column >= 0) {
      EXPECT_EQ(slot.tier, std::min<std::int64_t>(slot.column / 30, 3));
    }
}

TEST(Tiers, LongRowsAreCutIntoPiecesOfEqualLength) {
  for (std::int32_t count = 0; count < 100'000; count = count < 1000 ? count + 1 : count + 997) {
    const PieceCut cut = cut_into_pieces(count);
    EXPECT_LE(cut.length, kMostOfPiece);
    EXPECT_GE(cut.pieces * cut.length, count);
    EXPECT_LT((cut.pieces - 1) * cut.length, std::max(count, 1)) << "the last piece is empty";
  }
}

TEST(Tiers, RefuseWrongLayouts) {
  Stream stream({Backend::host, 0});
  const HostCsr m = falling_columns();
  ConversionInput input(m.view(), ValueType::f64, stream);
  const Policy good{{"columns", 30}, {"tiers", 10}, {"least", 1}};
  for (const char* wrong : {"columns=0", "columns=65536", "tiers=0", "tiers=32", "least=0"})
    EXPECT_THROW(convert_tiers(input, good.with(wrong)), Error) << wrong;
}

/// Rows of up to 300 nonzeros and columns that become rarer, in no order.
HostCsr many_pieces() {
  HostCsr m;
  m.rows = 9000, m.cols = 20'000;
  std::uint64_t state = 1;
  const auto random = [&](std::uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (std::int64_t i = 0; i < m.rows; ++i) {
    std::vector<std::int64_t> columns;
    for (auto left = i % 100 == 0 ? 300 : random(12); left > 0; --left) {
      const auto range = std::uint64_t{1} << random(15);
      columns.push_back(static_cast<std::int64_t>(random(range) * 7919 % 20'000));
    }
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    for (const std::int64_t column : columns) {
      m.col_idx.push_back(column);
      m.values.push_back(test::value_of(m.values.size()));
    }
    m.row_ptr.push_back(std::ssize(m.col_idx));
  }
  return m;
}

/// The GPU's conversion gives the arrays of the host's.
TEST(GpuTiers, ConversionIsThatOfTheHost) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  std::vector<test::NamedMatrix> matrices = test::matrix_zoo();
  matrices.push_back({"many pieces", many_pieces()});
  for (const test::NamedMatrix& one : matrices)
    for (const char* sizes : {"columns=5,tiers=4,least=2", "columns=200,tiers=31,least=3"}) {
      SCOPED_TRACE(one.name + " " + sizes);
      const Policy layout = Policy{{"columns", 1}, {"tiers", 1}, {"least", 1}}.with(sizes);
      std::vector<std::vector<std::int32_t>> arrays[2];
      for (const Backend backend : {Backend::host, Backend::cuda}) {
        Stream stream({backend, 0});
        ConversionInput input(one.matrix.view(), ValueType::f64, stream);
        const auto storage = convert_tiers(input, layout);
        const auto& a = static_cast<const TiersStorage&>(*storage);
        auto& found = arrays[backend == Backend::cuda ? 1 : 0];
        for (const Buffer* buffer : {&a.pattern->columns, &a.pattern->first_piece, &a.pattern->piece, &a.slot_rows, &a.local,
                                     &a.rest_columns, &a.values})
          found.push_back(download<std::int32_t>(*buffer, stream));
        stream.synchronize();
      }
      EXPECT_EQ(arrays[0], arrays[1]);
    }
}

TEST(Tiers, ManyPiecesHaveOnePlaceEach) {
  Stream stream({Backend::host, 0});
  const HostCsr m = many_pieces();
  ConversionInput input(m.view(), ValueType::f64, stream);
  const auto storage = convert_tiers(input, Policy{{"columns", 200}, {"tiers", 31}, {"least", 3}});
  EXPECT_GT(static_cast<const TiersStorage&>(*storage).pattern->pieces, 8192) << "GPUs sort them in chunks of 4096";
  EXPECT_GT(static_cast<const TiersStorage&>(*storage).pattern->tiers(), 1);
  std::vector<Nonzero> found;
  for (const Slot& slot : slots_of(static_cast<const TiersStorage&>(*storage)))
    if (slot.column >= 0) found.emplace_back(slot.row, slot.column, slot.value);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, nonzeros_of(m));
}

/// Graphs whose columns have about as many nonzeros gain nothing.
TEST(Tiers, AreForPowerLaws) {
  Stream stream({Backend::host, 0});
  const HostCsr m = falling_columns();
  ConversionInput input(m.view(), ValueType::f64, stream);
  EXPECT_EQ(tiers_cost(input, tiers_layouts(input).front()), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace shardmat
