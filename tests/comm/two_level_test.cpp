// What crosses between hosts, counted by the communicator and, apart from that, with sets of columns. Only runs on pretended
// hosts show more than refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/exchange/distinct_entries.h"
#include "comm/exchange/exchange.h"
#include "comm/exchange/two_level.h"
#include "tests/comm/exchange_cases.h"
#include "tests/comm/hosts.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

using Columns = std::set<std::int64_t>;

/// Rank by rank: the columns that it needs, as every rank knows them.
std::vector<Columns> needs(const std::vector<std::int64_t>& starts, std::int64_t reach, std::int64_t every) {
  std::vector<Columns> all;
  for (std::size_t p = 0; p + 1 < starts.size(); ++p) {
    Columns& mine = all.emplace_back();
    for (std::int64_t c = std::max<std::int64_t>(0, starts[p] - reach); c < std::min(starts.back(), starts[p + 1] + reach);
         ++c)
      if (c % every == 0 || (c + static_cast<std::int64_t>(p)) % 5 == 0) mine.insert(c);  // some are shared, some are not
  }
  return all;
}

int owner_of(const std::vector<std::int64_t>& starts, std::int64_t column) {
  return static_cast<int>(std::upper_bound(starts.begin(), starts.end(), column) - starts.begin()) - 1;
}

/// Entries that hosts must get: each once for each host that needs it, or for each rank.
struct Least {
  std::int64_t for_hosts = 0, for_ranks = 0;
};

Least least(const std::vector<std::int64_t>& starts, const std::vector<Columns>& needed) {
  Least found;
  std::map<int, Columns> of_hosts;
  for (int rank = 0; rank < world().size(); ++rank)
    for (const std::int64_t c : needed[static_cast<std::size_t>(rank)]) {
      if (world().host_of(owner_of(starts, c)) == world().host_of(rank)) continue;
      ++found.for_ranks;
      of_hosts[world().host_of(rank)].insert(c);
    }
  for (const auto& [host, columns] : of_hosts) found.for_hosts += std::ssize(columns);
  return found;
}

MappedExchange make(const std::string& name, const ExchangeContext& context, const std::vector<std::int64_t>& starts,
                    const std::vector<Columns>& needed) {
  const Columns& mine = needed[static_cast<std::size_t>(world().rank())];
  std::vector<std::int64_t> columns(mine.begin(), mine.end());
  return make_mapped_exchange(name, context, {starts}, columns);
}

/// What one exchange sends between hosts, over all ranks: counted where messages are given to MPI.
Communicator::Sent moved(Exchange& exchange) {
  Stream stream(Device{});
  const auto now = [] {
    return std::pair(world().all_reduce(world().sent_to_other_hosts().messages, Reduction::sum),
                     world().all_reduce(world().sent_to_other_hosts().bytes, Reduction::sum));
  };
  const auto before = now();
  exchange.start(stream);
  exchange.finish(stream);
  const auto after = now();
  return {after.first - before.first, after.second - before.second};
}

std::vector<std::vector<std::int64_t>> layouts() {
  const int size = world().size();
  std::vector<std::int64_t> even, first_host_has_none;
  for (int p = 0; p <= size; ++p) even.push_back(40 * p);
  for (int p = 0; p <= size; ++p)
    first_host_has_none.push_back(40 * std::count_if(even.begin(), even.begin() + p, [&](std::int64_t start) {
                                    return world().host_of(static_cast<int>(start / 40)) != 0;
                                  }));
  return {even, uneven_starts(size, 30), first_host_has_none};
}

TEST(TwoLevel, IsForHostsWithSeveralRanks) {
  if (world().size() == 1) GTEST_SKIP() << "needs several ranks";
  const ExchangeContext context{world()};
  const std::vector<std::int64_t> starts = uneven_starts(world().size(), 10);
  if (hosts_are_shared()) {
    EXPECT_EQ(make_mapped_exchange("two_level", context, {starts}, {}).exchange->name(), "two_level");
    return;
  }
  const std::string message =
      error_of(ErrorKind::resources, [&] { make_mapped_exchange("two_level", context, {starts}, {}); });
  EXPECT_NE(message.find(world().hosts() == 1 ? "all ranks are on one host" : "no two ranks share a host"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("use halo"), std::string::npos) << message;
}

TEST(TwoLevel, DistinctEntriesAreThoseOfSets) {
  for (const auto& starts : layouts())
    for (const std::int64_t reach : {0, 10, 1000}) {
      const std::vector<Columns> needed = needs(starts, reach, 2);
      const int rank = world().rank();
      const std::int64_t begin = starts[static_cast<std::size_t>(rank)];
      const Columns& mine = needed[static_cast<std::size_t>(rank)];
      const std::vector<std::int64_t> columns(mine.begin(), mine.end());
      const Halo halo = make_halo(world(), {starts}, columns);
      const DistinctEntries found = find_distinct_entries(world(), halo);

      std::map<int, std::vector<std::int64_t>> of_hosts;  // of this rank's columns
      std::vector<std::int64_t> got(needed.size());       // of each rank's
      std::map<std::int64_t, std::int64_t> number;        // of a column among those that its owner has for this host
      {
        std::map<int, Columns> sets;
        Columns here;
        for (int other = 0; other < world().size(); ++other)
          for (const std::int64_t c : needed[static_cast<std::size_t>(other)]) {
            const int owner = owner_of(starts, c);
            if (owner == other) continue;
            if (owner == rank) sets[world().host_of(other)].insert(c);
            if (world().host_of(other) == world().host_of(rank)) here.insert(c);
          }
        for (const auto& [host, set] : sets) of_hosts[host].assign(set.begin(), set.end());
        for (const std::int64_t c : here) number[c] = got[static_cast<std::size_t>(owner_of(starts, c))]++;
      }
      EXPECT_EQ(found.got, got);
      ASSERT_EQ(found.to.size(), of_hosts.size());
      for (const DistinctEntries::Host& to : found.to) {
        std::vector<std::int64_t> sent;
        for (std::int64_t i = to.first; i < to.first + to.count; ++i)
          sent.push_back(begin + found.sent[static_cast<std::size_t>(i)]);
        EXPECT_EQ(sent, of_hosts[to.host]) << "for host " << to.host;
      }
      for (std::size_t i = 0; i < halo.entries.size(); ++i)
        EXPECT_EQ(found.numbers[i], number.at(halo.entries[i])) << "column " << halo.entries[i];
    }
}

TEST(TwoLevel, EachEntryCrossesOnceForEachHost) {
  if (!hosts_are_shared()) GTEST_SKIP() << "needs several hosts, one of them with several ranks";
  int shared = 0;
  for (const auto& starts : layouts())
    for (const std::int64_t reach : {0, 10, 1000})
      for (const auto& [type, width] : {std::pair{ValueType::f32, 1}, {ValueType::f64, 1}, {ValueType::f64, 6}}) {
        SCOPED_TRACE(testing::Message() << starts.back() << " columns, reach " << reach << ", width " << width);
        ExchangeContext context{world()};
        context.type = type, context.width = width;
        const auto entry = static_cast<std::int64_t>(context.entry_bytes());
        const std::vector<Columns> needed = needs(starts, reach, 2);
        const Least few = least(starts, needed);
        const MappedExchange two_level = make("two_level", context, starts, needed),
                             halo = make("halo", context, starts, needed);
        const Communicator::Sent by_two_level = moved(*two_level.exchange), by_halo = moved(*halo.exchange);
        EXPECT_EQ(by_two_level.bytes, few.for_hosts * entry);
        EXPECT_EQ(by_halo.bytes, few.for_ranks * entry);
        EXPECT_LE(by_two_level.messages, by_halo.messages);
        EXPECT_LE(by_two_level.messages, world().hosts() * (world().hosts() - 1));  // these are small
        for (const auto& [exchange, counted] :
             {std::pair{two_level.exchange.get(), by_two_level}, {halo.exchange.get(), by_halo}}) {
          const Communicator::Sent said = exchange->sent_to_other_hosts();
          EXPECT_EQ(world().all_reduce(said.bytes, Reduction::sum), counted.bytes) << exchange->name();
          EXPECT_EQ(world().all_reduce(said.messages, Reduction::sum), counted.messages) << exchange->name();
        }
        EXPECT_NE(two_level.exchange->why().find("shared memory within"), std::string::npos) << two_level.exchange->why();
        if (few.for_hosts < few.for_ranks) ++shared;
      }
  EXPECT_GT(shared, 3);  // where ranks share, fewer bytes cross than with the halo
}

MappedExchange make_by_relays(const ExchangeContext& context, const XParts& parts, const ColumnView& columns) {
  auto map = make_column_map(ColumnLayout::compact, context.communicator, parts, columns);
  return {map, make_two_level_by_relays(context, map)};
}

/// As on GPUs, but with messages of MPI. Several ranks of one host, and hosts of one rank, have no use for relays, but these
/// work there, too.
TEST(TwoLevel, ByRelays) {
  if (world().size() == 1) GTEST_SKIP() << "needs several ranks";
  const ExchangeContext context{world()};
  check_exchange(context, "two_level", make_by_relays);
}

TEST(TwoLevel, EachEntryCrossesOnceByRelays) {
  for (const auto& starts : layouts())
    for (const std::int64_t reach : {0, 10, 1000}) {
      const ExchangeContext context{world()};
      const std::vector<Columns> needed = needs(starts, reach, 2);
      const Columns& mine = needed[static_cast<std::size_t>(world().rank())];
      const std::vector<std::int64_t> columns(mine.begin(), mine.end());
      const MappedExchange made = make_by_relays(context, {starts}, columns);
      const Communicator::Sent counted = moved(*made.exchange), said = made.exchange->sent_to_other_hosts();
      EXPECT_EQ(counted.bytes, 8 * least(starts, needed).for_hosts);
      EXPECT_EQ(world().all_reduce(said.bytes, Reduction::sum), counted.bytes);
      EXPECT_EQ(world().all_reduce(said.messages, Reduction::sum), counted.messages);
    }
}

TEST(TwoLevel, TwoUnderWayAndLateRanks) {
  if (!hosts_are_shared()) GTEST_SKIP() << "needs several hosts, one of them with several ranks";
  const ExchangeContext context{world()};
  check_two_in_turn(context, "two_level");
}

TEST(TwoLevel, LargeMessagesAreDivided) {
  if (!hosts_are_shared()) GTEST_SKIP() << "needs several hosts, one of them with several ranks";
  std::vector<std::int64_t> starts;
  for (int p = 0; p <= world().size(); ++p) starts.push_back(100'000 * p);
  std::vector<Columns> needed(static_cast<std::size_t>(world().size()));
  for (Columns& columns : needed)
    for (std::int64_t c = 0; c < starts.back(); ++c) columns.insert(columns.end(), c);
  const ExchangeContext context{world()};
  const MappedExchange two_level = make("two_level", context, starts, needed);
  std::int64_t messages = 0;
  const auto ranks = ranks_of_hosts(world());
  for (const auto& from : ranks)
    for (const auto& to : ranks)
      if (&from != &to) messages += std::min(std::ssize(from), std::ssize(to));
  const Communicator::Sent sent = moved(*two_level.exchange);
  EXPECT_EQ(sent.messages, messages);
  EXPECT_EQ(sent.bytes, 8 * least(starts, needed).for_hosts);
}

TEST(TwoLevel, AutoMeasuresItWhereRanksShareHosts) {
  if (world().size() == 1) GTEST_SKIP() << "needs several ranks";
  const std::vector<std::int64_t> starts = layouts().front();
  const ExchangeContext context{world()};
  const MappedExchange chosen = make("auto", context, starts, needs(starts, 10, 2));
  const std::string why = chosen.exchange->why();
  EXPECT_EQ(why.find("two_level") != std::string::npos, hosts_are_shared()) << why;
}

}  // namespace
}  // namespace shardmat
