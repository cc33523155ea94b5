// Column tiers on the host: every nonzero has one place, with its column and row; tiers hold the columns with the most
// nonzeros.
#include "kernels/formats/tiers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/matrix/rows.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

using Nonzero = std::tuple<std::int64_t, std::int64_t, double>;

std::vector<Nonzero> nonzeros_of(const HostCsr& matrix) {
  const Rows rows(matrix.view());
  std::vector<Nonzero> all;
  for (std::int64_t i = 0; i < rows.count(); ++i)
    for (std::int64_t k = rows.begin(i); k < rows.end(i); ++k) all.emplace_back(i, rows.column(k), rows.values()[k]);
  return all;
}

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
  // The third tier ends before its columns have few nonzeros each; a fourth would hold one of most columns.
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

/// Graphs whose columns have about as many nonzeros gain nothing.
TEST(Tiers, AreForPowerLaws) {
  Stream stream({Backend::host, 0});
  const HostCsr m = falling_columns();
  ConversionInput input(m.view(), ValueType::f64, stream);
  EXPECT_EQ(tiers_cost(input, tiers_layouts(input).front()), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace shardmat
