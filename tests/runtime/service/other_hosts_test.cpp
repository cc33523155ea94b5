// Vectors of requests on pretended hosts: each host gets its entries, and each product costs it one message there and one
// back.
#include "runtime/service/engine/other_hosts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/maps/row_map.h"
#include "runtime/service/engine/shared_arena.h"
#include "tests/runtime/contexts.h"

namespace shardmat::service {
namespace {

/// Messages and bytes that all ranks together have sent to other hosts.
std::pair<std::int64_t, std::int64_t> sent_by_all() {
  const Communicator::Sent mine = world().sent_to_other_hosts();
  return {world().all_reduce(mine.messages, Reduction::sum), world().all_reduce(mine.bytes, Reduction::sum)};
}

int first_rank_of_host() {
  int rank = 0;
  while (world().host_of(rank) != world().host_of(world().rank())) ++rank;
  return rank;
}

/// Rows that follow each other; every P-th row; all rows on the last rank.
std::vector<RowMapParts> maps_of(std::int64_t size) {
  const int ranks = world().size(), rank = world().rank();
  std::vector<RowMapParts> all{even_share(size, ranks, rank)};
  RowMapParts scattered = all.front();
  scattered.ids.clear(), scattered.starts.assign(1, 0);
  for (int p = 0; p < ranks; ++p) scattered.starts.push_back(scattered.starts.back() + (size - p + ranks - 1) / ranks);
  for (std::int64_t i = rank; i < size; i += ranks) scattered.ids.push_back(i);
  all.push_back(std::move(scattered));
  RowMapParts last{size, std::vector<std::int64_t>(static_cast<std::size_t>(ranks) + 1, 0), {}, {}, nullptr};
  last.starts.back() = size;
  for (std::int64_t i = 0; rank == ranks - 1 && i < size; ++i) last.ids.push_back(i);
  all.push_back(std::move(last));
  return all;
}

double entry(std::int64_t row, std::size_t column) {
  return static_cast<double>(row) + 1000.0 * static_cast<double>(column);
}

TEST(OtherHosts, OneMessageAHostAndProductThereAndBack) {
  constexpr std::int64_t kSize = 103;
  constexpr std::size_t kMost = 5;
  const std::string home = world().all_gather(world().host()).front();
  OtherHosts others(world(), home);
  EXPECT_EQ(others.exist(), world().hosts() > 1);
  EXPECT_EQ(others.at_home(), world().host() == home);
  if (!others.exist()) return;
  const std::optional<Arena> memory = share_arena(world(), first_rank_of_host(), kMost * kSize * sizeof(double));
  auto* const values = reinterpret_cast<double*>(memory->at(0, memory->bytes()).data());
  const auto at = [&](std::int64_t row, std::size_t column) -> double& {
    return values[static_cast<std::int64_t>(column) * kSize + row];
  };
  int number = 0;
  for (RowMapParts& parts : maps_of(kSize)) {
    SCOPED_TRACE(testing::Message() << "map " << number++);
    const auto map = RowMap::make(std::move(parts), context_of(kHost64));
    // By the ranks of each host: what is counted below.
    std::vector<std::int64_t> entries(static_cast<std::size_t>(world().hosts()));
    for (int p = 0; p < world().size(); ++p)
      entries[static_cast<std::size_t>(world().host_of(p))] +=
          map->starts()[static_cast<std::size_t>(p) + 1] - map->starts()[static_cast<std::size_t>(p)];
    std::int64_t messages = 0, elsewhere = 0;
    for (std::size_t host = 1; host < entries.size(); ++host) messages += entries[host] > 0, elsewhere += entries[host];
    for (const std::size_t width : {std::size_t{1}, kMost}) {
      SCOPED_TRACE(testing::Message() << width << " columns");
      std::vector<std::byte*> columns;
      for (std::size_t j = 0; j < width; ++j) columns.push_back(reinterpret_cast<std::byte*>(&at(0, j)));
      others.fetch(columns, *map, ValueType::f64);  // the first time, hosts tell which entries they have
      world().barrier();
      for (std::size_t j = 0; j < width; ++j)
        for (std::int64_t i = 0; i < kSize && world().rank() == first_rank_of_host(); ++i)
          at(i, j) = others.at_home() ? entry(i, j) : -1;
      const auto before = sent_by_all();
      others.fetch(columns, *map, ValueType::f64);
      const auto there = sent_by_all();
      EXPECT_EQ(there.first - before.first, messages);
      EXPECT_EQ(there.second - before.second, elsewhere * static_cast<std::int64_t>(width * sizeof(double)));
      for (std::size_t j = 0; j < width; ++j)
        for (const std::int64_t i : map->ids()) EXPECT_EQ(at(i, j), entry(i, j));
      for (std::size_t j = 0; j < width; ++j)
        for (const std::int64_t i : map->ids()) at(i, j) = 0.5 * entry(i, j);
      const auto between = sent_by_all();
      EXPECT_EQ(between, there);
      others.deliver(columns, *map, ValueType::f64);
      const auto back = sent_by_all();
      EXPECT_EQ(back.first - between.first, messages);
      EXPECT_EQ(back.second - between.second, elsewhere * static_cast<std::int64_t>(width * sizeof(double)));
      for (std::size_t j = 0; others.at_home() && j < width; ++j)
        for (std::int64_t i = 0; i < kSize; ++i) EXPECT_EQ(at(i, j), 0.5 * entry(i, j));
      world().barrier();
    }
  }
}

}  // namespace
}  // namespace shardmat::service
