#include "comm/exchange/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "comm/exchange/exchange_cost.h"
#include "comm/exchange/gathered_layout.h"
#include "comm/exchange/halo.h"
#include "comm/exchange/sum_over_ranks.h"
#include "tests/comm/exchange_cases.h"
#include "tests/comm/hosts.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

TEST(GatheredLayout, PositionsWithEmptyParts) {
  GatheredLayout layout = make_gathered_layout({0, 0, 33, 33, 40, 40});
  EXPECT_EQ(layout.parts(), 5);
  EXPECT_EQ(layout.stride, 64);
  EXPECT_EQ(layout.length(), 320);
  EXPECT_EQ(layout.part_size(0), 0);
  EXPECT_EQ(layout.part_size(1), 33);
  std::vector<std::int64_t> columns = {39, 0, 32, 33};
  layout.renumber(columns);
  EXPECT_EQ(columns, (std::vector<std::int64_t>{3 * 64 + 6, 64, 96, 3 * 64}));
  for (const std::int64_t wrong : {40, -1}) {
    std::vector<std::int64_t> one = {wrong};
    EXPECT_NE(error_of(ErrorKind::internal, [&] { layout.renumber(one); }).find("column " + std::to_string(wrong)),
              std::string::npos);
  }
}

TEST(GatheredLayout, OnePartHasNoPadding) { EXPECT_EQ(make_gathered_layout({0, 33}).length(), 33); }

TEST(GatheredLayout, NoColumns) {
  const GatheredLayout layout = make_gathered_layout({0, 0, 0});
  EXPECT_EQ(layout.stride, 0);
  EXPECT_EQ(layout.length(), 0);
}

TEST(GatheredLayout, RefusesMoreThanInt32CanIndex) {
  const std::int64_t limit = std::int64_t{1} << 31;
  EXPECT_EQ(make_gathered_layout({0, limit - 64}).length(), limit - 64);
  const std::string message = error_of(ErrorKind::resources, [&] {
    make_gathered_layout({0, limit / 4, limit / 4, limit / 4, limit / 4});
  });
  EXPECT_NE(message.find("4 parts of up to 536,870,912 entries"), std::string::npos) << message;
  EXPECT_NE(message.find("2^31"), std::string::npos) << message;
  error_of(ErrorKind::resources, [&] { make_gathered_layout({0, std::int64_t{1} << 62}); });
}

TEST(GatheredLayout, RefusesStartsThatDecrease) {
  EXPECT_NE(error_of(ErrorKind::internal, [] { make_gathered_layout({0, 5, 4}); }).find("not decrease"), std::string::npos);
  EXPECT_NE(error_of(ErrorKind::internal, [] { make_gathered_layout({}); }).find("begin with 0"), std::string::npos);
}

TEST(Halo, IsFoundWithoutOtherRanks) {
  std::vector<std::int64_t> columns = {40, 12, 3, 14, 40, 10};
  const Halo halo = find_halo(10, 5, columns);
  EXPECT_EQ(halo.entries, (std::vector<std::int64_t>{3, 40}));
  EXPECT_EQ(halo.received, 2);
  EXPECT_EQ(halo.length(), Halo::kApart + 2);
  halo.renumber(columns);
  EXPECT_EQ(columns, (std::vector<std::int64_t>{Halo::kApart + 1, 2, Halo::kApart, 4, Halo::kApart + 1, 0}));
}

/// As if all wrote into one memory that has x of every rank: what arrives, and how often a place is written.
TEST(SentPlaces, EachIsFilledOnceWithItsColumn) {
  const int size = world().size(), rank = world().rank();
  for (const std::int64_t reach : {0, 60, 1000}) {
    const std::vector<std::int64_t> starts = uneven_starts(size, 50);
    const std::int64_t begin = starts[static_cast<std::size_t>(rank)], end = starts[static_cast<std::size_t>(rank) + 1];
    std::vector<std::int64_t> order, columns;
    for (std::int64_t i = end - begin - 1; i >= 0; --i) order.push_back(i);
    for (std::int64_t c = std::max<std::int64_t>(begin - reach, 0); c < std::min(end + reach, starts.back()); ++c)
      columns.push_back(c);
    const Halo halo = make_halo(world(), {starts, order}, columns);
    const SentPlaces there = find_sent_places(world(), halo);
    ASSERT_EQ(there.receivers.size(), halo.sent.size());

    const auto length = static_cast<std::size_t>(world().all_reduce(halo.length(), Reduction::max));
    std::vector<std::int64_t> arrived(length * static_cast<std::size_t>(size)), times(arrived.size());
    for (std::size_t i = 0; i < halo.sent.size(); ++i) {
      const std::size_t receiver = there.receivers[i];
      const std::int64_t place = static_cast<std::int64_t>(i) + there.shifts[receiver];
      ASSERT_GE(place, 0);
      ASSERT_LT(place, static_cast<std::int64_t>(length));
      arrived[receiver * length + static_cast<std::size_t>(place)] += begin + order[static_cast<std::size_t>(halo.sent[i])];
      ++times[receiver * length + static_cast<std::size_t>(place)];
    }
    world().all_reduce(std::span<std::int64_t>(arrived), Reduction::sum);
    world().all_reduce(std::span<std::int64_t>(times), Reduction::sum);
    for (std::size_t place = 0; place < length; ++place) {
      const std::int64_t entry = static_cast<std::int64_t>(place) - halo.first_received();
      const bool comes = entry >= 0 && entry < halo.received;
      const std::size_t at = static_cast<std::size_t>(rank) * length + place;
      EXPECT_EQ(times[at], comes ? 1 : 0) << "place " << place;
      EXPECT_EQ(arrived[at], comes ? halo.entries[static_cast<std::size_t>(entry)] : 0) << "place " << place;
    }
    std::vector<int> behind;  // how far each receiver is behind this rank, in a ring
    for (const Halo::Peer& peer : halo.to) behind.push_back((peer.rank - rank + size) % size);
    EXPECT_TRUE(std::is_sorted(behind.begin(), behind.end()));
  }
}

/// Ranks that need a part of x, or all of it.
TEST(Exchange, ARuleChoosesTheLayoutWhereResultsMustBeReproducible) {
  if (world().size() == 1) GTEST_SKIP() << "one rank needs no x of others";
  constexpr std::int64_t kOfEach = 6400;  // so many that padding does not count
  std::vector<std::int64_t> starts;
  for (int rank = 0; rank <= world().size(); ++rank) starts.push_back(rank * kOfEach);
  for (const bool needs_all : {false, true}) {
    const std::int64_t begin = needs_all ? 0 : world().rank() * kOfEach, end = needs_all ? starts.back() : begin + kOfEach;
    std::vector<std::int64_t> columns;
    for (std::int64_t column = begin; column < end; ++column) columns.push_back(column);
    if (!needs_all)  // and a third of what the next rank has
      for (std::int64_t i = 0; i < kOfEach / 3; ++i) columns.push_back((begin + kOfEach + i) % starts.back());
    ExchangeContext context{world()};
    context.layout_by_rule = true;
    const MappedExchange made = make_mapped_exchange("auto", context, {starts}, columns);
    // All but this rank's own are 1/2 of x on two ranks, and 3/4 on four: a larger share is gathered.
    const double share = needs_all ? 1.0 - 1.0 / world().size() : 0;
    EXPECT_EQ(made.map->layout(), share > 0.75 ? ColumnLayout::gathered : ColumnLayout::compact);
    EXPECT_NE(made.exchange->why().find("by rule"), std::string::npos) << made.exchange->why();
  }
}

TEST(Exchange, UnknownNameIsRefusedWithTheNearest) {
  const ExchangeContext context{world()};
  const std::string message = error_of(
      ErrorKind::usage, [&] { make_mapped_exchange("algather", context, {uneven_starts(world().size(), 10)}, {}); });
  EXPECT_NE(message.find("did you mean 'allgather'?"), std::string::npos) << message;
  EXPECT_NE(message.find("auto, none, allgather, halo, peer or two_level"), std::string::npos) << message;
}

TEST(Exchange, NoneIsForOneRank) {
  const ExchangeContext context{world()};
  const auto make = [&] { return make_mapped_exchange("none", context, {uneven_starts(world().size(), 10)}, {}).exchange; };
  if (world().size() == 1) EXPECT_EQ(make()->name(), "none");
  else EXPECT_NE(error_of(ErrorKind::usage, make).find("one rank"), std::string::npos);
}

TEST(Exchange, PeerIsForGpus) {
  if (world().size() == 1) GTEST_SKIP() << "needs several ranks";
  const ExchangeContext context{world()};
  const std::string message = error_of(
      ErrorKind::resources, [&] { make_mapped_exchange("peer", context, {uneven_starts(world().size(), 10)}, {}); });
  EXPECT_NE(message.find("host backend"), std::string::npos) << message;
  EXPECT_NE(message.find("use halo"), std::string::npos) << message;
}

TEST(Exchange, HostEveryNameTypeAndLayout) {
  const ExchangeContext context{world()};
  check_exchanges(context);
}

TEST(Exchange, HostSeveralOnOneMap) {
  const ExchangeContext context{world()};
  check_several_on_one_map(context);
}

TEST(Exchange, OfAnotherLayoutIsRefused) {
  if (world().size() == 1) GTEST_SKIP() << "needs several ranks";
  const ExchangeContext context{world()};
  const auto map = make_column_map(ColumnLayout::compact, world(), {uneven_starts(world().size(), 10)}, {});
  const std::string message = error_of(ErrorKind::usage, [&] { make_exchange("allgather", context, map); });
  EXPECT_NE(message.find("x is compact there"), std::string::npos) << message;
  EXPECT_EQ(make_exchange("halo", context, map)->name(), "halo");
}

TEST(ColumnMap, ForgottenColumnsAreRefused) {
  for (const ColumnLayout layout : {ColumnLayout::compact, ColumnLayout::gathered}) {
    std::vector<std::int64_t> columns;
    const auto map = make_column_map(layout, world(), {uneven_starts(world().size(), 10)}, columns);
    EXPECT_GE(map->length(), map->first_own() + map->own());
    map->forget_columns();
    EXPECT_NE(error_of(ErrorKind::internal, [&] { map->renumber(columns); }).find("forgotten"), std::string::npos);
  }
}

TEST(Exchange, HostReplayedFromAGraph) {
  const ExchangeContext context{world()};
  check_replay(context);
}

TEST(ExchangeCost, Host) {
  const std::vector<ExchangeCost> costs = measure_exchange_costs(ExchangeContext{world()});
  if (world().size() == 1) {
    EXPECT_TRUE(costs.empty());
    EXPECT_EQ(measure_exchange_latency(ExchangeContext{world()}), 0);
    return;
  }
  std::vector<std::string> names;
  for (const ExchangeCost& cost : costs) names.push_back(cost.exchange);
  std::vector<std::string> possible = {"allgather", "halo"};
  if (hosts_are_shared()) possible.emplace_back("two_level");
  EXPECT_EQ(names, possible);
  EXPECT_GT(measure_exchange_latency(ExchangeContext{world()}), 0);
  for (const ExchangeCost& cost : costs) {
    EXPECT_EQ(cost.ranks, world().size());
    EXPECT_GT(cost.latency, 0);
    EXPECT_GE(cost.seconds_per_byte, 0);
    EXPECT_GE(cost.seconds_per_byte_of_few, 0);
    EXPECT_NEAR(cost.few_bytes, 1 << 20, 1 << 14);  // some pad
  }
}

TEST(SumOverRanks, Host) {
  const ExchangeContext context{world()};
  EXPECT_EQ(SumOverRanks(context, 1).name(), world().size() == 1 ? "none" : "MPI");
  check_sums(context);
}

}  // namespace
}  // namespace shardmat
