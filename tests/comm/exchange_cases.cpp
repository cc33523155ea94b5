#include "tests/comm/exchange_cases.h"

#include <gtest/gtest.h>

#include <string>

namespace shardmat {
namespace {

/// A value that tells column and round, exact in f32.
template <class T>
T value_of(std::int64_t column, int round) {
  return static_cast<T>(1 + column % 4096 + 8192 * round);
}

template <class T>
void write_x(Exchange& exchange, int rank, int round, Stream& stream) {
  const GatheredLayout& layout = exchange.layout();
  std::vector<T> mine;
  for (std::int64_t c = layout.starts[static_cast<std::size_t>(rank)]; c < layout.starts[static_cast<std::size_t>(rank) + 1];
       ++c)
    mine.push_back(value_of<T>(c, round));
  copy_to_device(exchange.local_x(), mine.data(), mine.size() * sizeof(T), stream);
}

template <class T>
void expect_x(const Exchange& exchange, int round, Stream& stream) {
  const GatheredLayout& layout = exchange.layout();
  std::vector<T> expected(static_cast<std::size_t>(layout.length()), T{0}), found(expected.size(), T{-1});
  for (std::int64_t c = 0; c < layout.starts.back(); ++c)
    expected[static_cast<std::size_t>(layout.position(c))] = value_of<T>(c, round);
  copy_to_host(found.data(), exchange.gathered_x(), found.size() * sizeof(T), stream);
  EXPECT_EQ(found, expected);
}

template <class T>
void run_rounds(Exchange& exchange, const ExchangeContext& context, int rounds) {
  Stream stream(context.device);
  for (int round = 0; round < rounds; ++round) {
    write_x<T>(exchange, context.communicator.rank(), round, stream);
    exchange.start(stream);
    exchange.finish(stream);
    exchange.wait(stream);
    expect_x<T>(exchange, round, stream);
    context.communicator.barrier();  // a fast rank must not overwrite x while a slow one still compares
  }
}

}  // namespace

std::vector<std::int64_t> uneven_starts(int parts, std::int64_t unit) {
  std::vector<std::int64_t> starts = {0};
  for (int p = 0; p < parts; ++p) starts.push_back(starts.back() + (p % 3 == 1 ? 0 : (p + 1) * unit));
  return starts;
}

void check_exchanges(const ExchangeContext& given) {
  const int size = given.communicator.size();
  std::vector<std::string> names = {"auto"};
  for (const ExchangeEntry& entry : exchanges())
    if (entry.name != "none" || size == 1) names.emplace_back(entry.name);
  std::vector<std::int64_t> only_last(static_cast<std::size_t>(size) + 1, 0);
  only_last.back() = 100;
  const std::vector<std::vector<std::int64_t>> layouts = {uneven_starts(size, 1), uneven_starts(size, 1000), only_last,
                                                          std::vector<std::int64_t>(static_cast<std::size_t>(size) + 1, 0)};
  for (const std::string& name : names)
    for (const ValueType type : {ValueType::f32, ValueType::f64})
      for (const auto& starts : layouts) {
        SCOPED_TRACE(name + " " + std::string(shardmat::name(type)) + " columns " + std::to_string(starts.back()));
        ExchangeContext context = given;
        context.type = type;
        const auto exchange = make_exchange(name, context, make_gathered_layout(starts));
        EXPECT_EQ(exchange->name(), size == 1 ? "none" : name == "auto" ? "allgather" : name);
        EXPECT_FALSE(exchange->why().empty());
        EXPECT_EQ(exchange->bytes_received(),
                  exchange->layout().stride * (size - 1) * static_cast<std::int64_t>(size_of(type)));
        dispatch(type, [&](auto tag) { run_rounds<typename decltype(tag)::type>(*exchange, context, 3); });
      }
}

void check_replay(const ExchangeContext& given) {
  ExchangeContext context = given;
  context.type = ValueType::f32;
  const auto exchange =
      make_exchange("auto", context, make_gathered_layout(uneven_starts(context.communicator.size(), 500)));
  ASSERT_TRUE(exchange->capturable());
  Stream stream(context.device);
  Graph graph(stream, [&] {
    exchange->start(stream);
    exchange->finish(stream);
  });
  for (int round = 0; round < 20; ++round) {
    write_x<float>(*exchange, context.communicator.rank(), round, stream);
    graph.launch(stream);
    exchange->wait(stream);
    expect_x<float>(*exchange, round, stream);
    context.communicator.barrier();
  }
}

}  // namespace shardmat
