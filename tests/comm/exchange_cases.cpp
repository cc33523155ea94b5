#include "tests/comm/exchange_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "comm/exchange/sum_over_ranks.h"
#include "comm/nccl/nccl_communicator.h"

namespace shardmat {
namespace {

/// A value that tells column, right-hand side and round, exact in f32.
template <class T>
T value_of(std::int64_t column, std::size_t side, int round) {
  return static_cast<T>(1 + (column + 97 * static_cast<std::int64_t>(side)) % 4096 + 8192 * round);
}

/// What a rank owns and needs.
struct Case {
  std::vector<std::int64_t> starts, order, columns;
  std::int64_t begin, end;

  /// With `shuffled`, own entries lie backwards. `reach`: columns before and behind the own ones that are needed, or -1:
  /// all.
  Case(std::vector<std::int64_t> starts_, int rank, bool shuffled, std::int64_t reach)
      : starts(std::move(starts_)),
        begin(starts[static_cast<std::size_t>(rank)]),
        end(starts[static_cast<std::size_t>(rank) + 1]) {
    if (shuffled)
      for (std::int64_t i = end - begin - 1; i >= 0; --i) order.push_back(i);
    const std::int64_t first = reach < 0 ? 0 : std::max<std::int64_t>(0, begin - reach),
                       last = reach < 0 ? starts.back() : std::min(starts.back(), end + reach);
    for (std::int64_t c = last - 1; c >= first; --c) columns.push_back(c);  // in any order
    if (!columns.empty()) columns.push_back(columns.front());               // and more than once
  }
  XParts parts() const { return {starts, order}; }
  std::int64_t foreign() const {
    const std::set<std::int64_t> distinct(columns.begin(), columns.end());
    return std::count_if(distinct.begin(), distinct.end(), [&](std::int64_t c) { return c < begin || c >= end; });
  }
};

template <class T>
void write_x(Exchange& exchange, const Case& c, std::size_t width, int round, Stream& stream) {
  std::vector<T> mine;
  for (std::int64_t i = 0; i < c.end - c.begin; ++i)
    for (std::size_t side = 0; side < width; ++side)
      mine.push_back(value_of<T>(c.begin + (c.order.empty() ? i : c.order[static_cast<std::size_t>(i)]), side, round));
  copy_to_device(exchange.local_x(), mine.data(), mine.size() * sizeof(T), stream);
}

/// `positions`: of the case's columns. If it needs all, zeros lie everywhere else.
template <class T>
void expect_x(const Exchange& exchange, const Case& c, std::span<const std::int64_t> positions, std::size_t width, int round,
              Stream& stream) {
  std::vector<T> found(static_cast<std::size_t>(exchange.length()) * width, T{-1});
  copy_to_host(found.data(), exchange.x(), found.size() * sizeof(T), stream);
  std::vector<T> expected(found.size(), T{0});
  for (std::size_t k = 0; k < positions.size(); ++k)
    for (std::size_t side = 0; side < width; ++side) {
      const std::size_t at = static_cast<std::size_t>(positions[k]) * width + side;
      ASSERT_LT(at, found.size());
      expected[at] = value_of<T>(c.columns[k], side, round);
      ASSERT_EQ(found[at], expected[at]) << "column " << c.columns[k] << ", right-hand side " << side;
    }
  if (std::ssize(positions) > c.starts.back()) {
    EXPECT_EQ(found, expected);
  }
}

/// Exchanges that must not overwrite what a slow rank got before its next start(), however fast others are; libraries may.
bool is_ours(const Exchange& exchange, const ExchangeContext& context) {
  return exchange.name() == "peer" || (exchange.name() == "two_level" && context.device.backend == Backend::host);
}

/// Before a slow rank compares what it got.
void let_others_go_ahead(const Exchange& exchange, const ExchangeContext& context, int round) {
  if (!is_ours(exchange, context)) return;
  if (round % context.communicator.size() == context.communicator.rank())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}
void meet_again(const Exchange& exchange, const ExchangeContext& context) {
  if (!is_ours(exchange, context)) context.communicator.barrier();
}

template <class T>
void run_rounds(Exchange& exchange, const ExchangeContext& context, const Case& c, std::span<const std::int64_t> positions,
                int rounds) {
  Stream stream(context.device);
  const auto width = static_cast<std::size_t>(context.width);
  for (int round = 0; round < rounds; ++round) {
    write_x<T>(exchange, c, width, round, stream);
    exchange.start(stream);
    exchange.finish(stream);
    exchange.wait(stream);
    let_others_go_ahead(exchange, context, round);
    expect_x<T>(exchange, c, positions, width, round, stream);
    meet_again(exchange, context);
  }
}

/// `name` for several ranks.
void expect_name(const Exchange& exchange, const std::string& name, int ranks) {
  if (ranks == 1) EXPECT_EQ(exchange.name(), "none");
  else if (name != "auto") EXPECT_EQ(exchange.name(), name);
  else EXPECT_NE(exchange.name(), "none");
  EXPECT_FALSE(exchange.why().empty());
}

/// One rank does without, too.
bool has_peers(const ExchangeContext& given) {
  return given.device.backend == Backend::cuda && (given.nccl == nullptr || given.nccl->why_no_peer_access().empty());
}

/// Which of these exchanges can be had here; "auto" can.
std::vector<std::string> possible(const ExchangeContext& given, std::vector<std::string> names) {
  std::erase_if(names, [&](const std::string& name) {
    const ExchangeEntry* const entry = find_exchange(name);
    return entry != nullptr && given.communicator.size() > 1 && !entry->why_not(given).empty();
  });
  return names;
}

}  // namespace

std::vector<std::int64_t> uneven_starts(int parts, std::int64_t unit) {
  std::vector<std::int64_t> starts = {0};
  for (int p = 0; p < parts; ++p) starts.push_back(starts.back() + (p % 3 == 1 ? 0 : (p + 1) * unit));
  return starts;
}

void check_exchange(const ExchangeContext& given, const std::string& name, const MakeExchange& make) {
  const int size = given.communicator.size();
  std::vector<std::int64_t> only_last(static_cast<std::size_t>(size) + 1, 0);
  only_last.back() = 100;
  const std::vector<std::vector<std::int64_t>> layouts = {uneven_starts(size, 1), uneven_starts(size, 1000), only_last,
                                                          std::vector<std::int64_t>(static_cast<std::size_t>(size) + 1, 0)};
  for (const auto& [type, width] :
       {std::pair{ValueType::f32, 1}, {ValueType::f64, 1}, {ValueType::f32, 3}, {ValueType::f64, 32}})
    for (const auto& starts : layouts)
      for (const bool shuffled : {false, true})
        for (const std::int64_t reach : {-1, 0, 1, 150}) {
          SCOPED_TRACE(name + " " + std::string(shardmat::name(type)) + " × " + std::to_string(width) + " columns " +
                       std::to_string(starts.back()) + (shuffled ? " shuffled" : "") + " reach " + std::to_string(reach));
          ExchangeContext context = given;
          context.type = type;
          context.width = width;
          context.overlapped = width == 32;
          const Case c(starts, given.communicator.rank(), shuffled, reach);
          std::vector<std::int64_t> positions = c.columns;
          const auto [map, exchange] = make(context, c.parts(), positions);
          map->renumber(positions);
          map->forget_columns();
          expect_name(*exchange, name, size);
          const std::int64_t others = exchange->name() == "allgather" ? exchange->length() / size * (size - 1)
                                      : size == 1                     ? 0
                                                                      : c.foreign();
          EXPECT_EQ(exchange->bytes_received(), others * static_cast<std::int64_t>(context.entry_bytes()));
          dispatch(type, [&, &first = *exchange](auto tag) {
            run_rounds<typename decltype(tag)::type>(first, context, c, positions, 5);
          });
        }
}

void check_exchanges(const ExchangeContext& given) {
  if (given.device.backend == Backend::cuda && !has_peers(given))
    std::cout << "peer is left out: " << given.nccl->why_no_peer_access() << "\n";
  std::vector<std::string> names = {"auto"};
  for (const ExchangeEntry& entry : exchanges()) names.emplace_back(entry.name);
  for (const std::string& name : possible(given, std::move(names)))
    check_exchange(given, name, [&](const ExchangeContext& context, const XParts& parts, const ColumnView& columns) {
      return make_mapped_exchange(name, context, parts, columns);
    });
}

void check_several_on_one_map(const ExchangeContext& given) {
  const int size = given.communicator.size();
  for (const std::string& name : possible(given, {"allgather", "halo", "two_level", "auto"})) {
    SCOPED_TRACE(name);
    const Case c(uneven_starts(size, 70), given.communicator.rank(), true, 40);
    std::vector<std::int64_t> positions = c.columns;
    MappedExchange first = make_mapped_exchange(name, given, c.parts(), positions);
    first.map->renumber(positions);
    first.map->forget_columns();
    ExchangeContext wide = given, narrow = given;
    wide.width = 8, narrow.type = ValueType::f32, narrow.width = 3;
    const auto second = make_exchange("auto", wide, first.map), third = make_exchange("auto", narrow, first.map);
    for (int round = 0; round < 2; ++round) {
      run_rounds<double>(*second, wide, c, positions, 2);
      run_rounds<double>(*first.exchange, given, c, positions, 2);
      run_rounds<float>(*third, narrow, c, positions, 2);
    }
    first.exchange.reset();  // the map lives as long as an exchange needs it
    first.map.reset();
    run_rounds<double>(*second, wide, c, positions, 2);
  }
}

void check_two_in_turn(const ExchangeContext& given, const std::string& name) {
  constexpr int kRounds = 300;
  const int size = given.communicator.size(), rank = given.communicator.rank();
  const Case near(uneven_starts(size, 20), rank, false, 30), all(uneven_starts(size, 40), rank, true, -1);
  std::vector<std::int64_t> of_near = near.columns, of_all = all.columns;
  const MappedExchange first = make_mapped_exchange(name, given, near.parts(), of_near),
                       second = make_mapped_exchange(name, given, all.parts(), of_all);
  first.map->renumber(of_near);
  second.map->renumber(of_all);
  Stream stream(given.device);
  for (int round = 0; round < kRounds; ++round) {
    write_x<double>(*first.exchange, near, 1, round, stream);
    write_x<double>(*second.exchange, all, 1, round, stream);
    first.exchange->start(stream);
    second.exchange->start(stream);
    if ((round * 7 + rank * 3) % 11 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    first.exchange->finish(stream);
    if (round % 3 != 0) second.exchange->finish(stream);
    expect_x<double>(*first.exchange, near, of_near, 1, round, stream);
    if (round % 3 == 0) second.exchange->finish(stream);
    if ((round * 5 + rank) % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    expect_x<double>(*second.exchange, all, of_all, 1, round, stream);
  }
}

void check_sums(const ExchangeContext& context) {
  const int ranks = context.communicator.size();
  for (const int count : {1, 2, 5}) {
    SumOverRanks sum(context, count);
    const Buffer values(context.device, static_cast<std::size_t>(count) * sizeof(double));
    Stream stream(context.device);
    std::unique_ptr<Graph> graph;
    for (int round = 0; round < 100; ++round) {
      std::vector<double> mine(static_cast<std::size_t>(count)), expected(mine.size(), 0.0);
      for (int r = 0; r < ranks; ++r)
        for (std::size_t i = 0; i < mine.size(); ++i) {
          const double value = 0.1 * (r + 1) + static_cast<double>(i) / 3 - 1e-9 * round;  // whose sum rounds
          expected[i] += value;
          if (r == context.communicator.rank()) mine[i] = value;
        }
      copy_to_device(values.data(), mine.data(), values.bytes(), stream);
      if (round == 2) graph = std::make_unique<Graph>(stream, [&] { sum(values.as<double>(), stream); });
      if (graph != nullptr) graph->launch(stream);
      else sum(values.as<double>(), stream);
      if (context.nccl != nullptr) context.nccl->wait(stream, "sum");
      copy_to_host(mine.data(), values.data(), values.bytes(), stream);
      for (std::size_t i = 0; i < mine.size(); ++i)
        if (sum.name() == "NCCL") ASSERT_NEAR(mine[i], expected[i], 1e-14) << "round " << round;
        else ASSERT_EQ(mine[i], expected[i]) << "round " << round << " by " << sum.name();
    }
  }
}

void check_replay(const ExchangeContext& given) {
  // The next exchange gets the same addresses: nothing that was kept of them for a graph may still be in use.
  constexpr int kCycles = 4;
  ExchangeContext context = given;
  context.type = ValueType::f32;
  const Case c(uneven_starts(context.communicator.size(), 5000), context.communicator.rank(), false, -1);
  for (const std::string& name : possible(given, {"allgather", "halo", "peer", "two_level"})) {
    if (name == "peer" && !has_peers(given)) continue;
    for (int cycle = 0; cycle < kCycles; ++cycle) {
      SCOPED_TRACE(fmt::format("{}, {}", name, cycle));
      std::vector<std::int64_t> positions = c.columns;
      const MappedExchange made = make_mapped_exchange(name, context, c.parts(), positions);
      made.map->renumber(positions);
      Exchange* const exchange = made.exchange.get();
      ASSERT_TRUE(exchange->capturable());
      Stream stream(context.device);
      const auto move = [&] {
        exchange->start(stream);
        exchange->finish(stream);
      };
      const auto expect_moved = [&](int round) {
        exchange->wait(stream);
        let_others_go_ahead(*exchange, context, round);
        expect_x<float>(*exchange, c, positions, 1, round, stream);
        meet_again(*exchange, context);
      };
      write_x<float>(*exchange, c, 1, 0, stream);
      move();
      expect_moved(0);
      Graph graph(stream, move);
      for (int round = 1; round < 20; ++round) {
        write_x<float>(*exchange, c, 1, round, stream);
        graph.launch(stream);
        expect_moved(round);
      }
    }
  }
}

void check_many_without_wait(const ExchangeContext& given) {
  constexpr int kMany = 1000, kRounds = 3;
  constexpr std::int64_t kEntries = 1 << 20;  // of 8 bytes: more than a few thread blocks move
  const int size = given.communicator.size(), rank = given.communicator.rank();
  for (const std::string name : {"allgather", "peer"}) {
    if (name == "peer" && !has_peers(given)) continue;
    SCOPED_TRACE(name);
    const Case large(uneven_starts(size, kEntries / size), rank, false, -1), small(uneven_starts(size, 700), rank, true, 40);
    std::vector<std::int64_t> of_large = large.columns, of_small = small.columns;
    ExchangeContext context = given, overlapped = given;
    overlapped.overlapped = true;
    const MappedExchange first = make_mapped_exchange(name, context, large.parts(), of_large),
                         second = make_mapped_exchange(name, overlapped, small.parts(), of_small);
    first.map->renumber(of_large);
    second.map->renumber(of_small);
    Exchange *const one = first.exchange.get(), *const other = second.exchange.get();
    Stream stream(given.device);
    for (int round = 0; round < kRounds; ++round) {
      write_x<double>(*one, large, 1, round, stream);
      write_x<double>(*other, small, 1, round, stream);
      for (int i = 0; i < kMany; ++i)
        for (Exchange* exchange : {one, other}) exchange->start(stream), exchange->finish(stream);
      other->wait(stream);
      expect_x<double>(*one, large, of_large, 1, round, stream);
      expect_x<double>(*other, small, of_small, 1, round, stream);
      given.communicator.barrier();
    }
  }
}

}  // namespace shardmat
