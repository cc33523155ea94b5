#include "comm/exchange/exchange_cost.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>

namespace shardmat {
namespace {

constexpr std::int64_t kFew = 1 << 20, kMany = 16 << 20;  ///< bytes

/// Bytes that a rank receives when all ranks need so many entries of every other, and the seconds that takes.
std::pair<double, double> measure(const ExchangeEntry& entry, const ExchangeContext& context, std::int64_t entries) {
  Communicator& communicator = context.communicator;
  std::vector<std::int64_t> starts(static_cast<std::size_t>(communicator.size()) + 1);
  for (std::size_t p = 0; p < starts.size(); ++p) starts[p] = static_cast<std::int64_t>(p) * entries;
  std::vector<std::int64_t> columns(static_cast<std::size_t>(starts.back()));
  std::iota(columns.begin(), columns.end(), std::int64_t{0});
  const auto exchange = make_mapped_exchange(entry.name, context, {starts}, columns).exchange;
  const auto bytes = static_cast<double>(communicator.all_reduce(exchange->bytes_received(), Reduction::max));
  return {bytes, time_exchange(*exchange, context)};
}

/// f(entry, context) for each exchange that can be had here, of f64 and one right-hand side.
template <class F>
void for_each_exchange(ExchangeContext context, const F& f) {
  context.type = ValueType::f64;
  context.width = 1;
  for (const ExchangeEntry& entry : exchanges())
    if (entry.ranks == ExchangeRanks::several && entry.why_not(context).empty()) f(entry, context);
}

}  // namespace

std::vector<ExchangeCost> measure_exchange_costs(const ExchangeContext& given) {
  std::vector<ExchangeCost> costs;
  const int ranks = given.communicator.size();
  if (ranks == 1) return costs;
  for_each_exchange(given, [&](const ExchangeEntry& entry, const ExchangeContext& context) {
    const auto [none, latency] = measure(entry, context, 1);
    const auto [few, seconds_of_few] = measure(entry, context, kFew / 8 / (ranks - 1));
    const auto [many, seconds] = measure(entry, context, kMany / 8 / (ranks - 1));
    const auto slope = [](double bytes, double of_them) { return std::max(0.0, of_them) / std::max(bytes, 1.0); };
    costs.push_back({ranks, std::string(entry.name), latency, slope(many - few, seconds - seconds_of_few), few,
                     slope(few - none, seconds_of_few - latency)});
  });
  return costs;
}

double measure_exchange_latency(const ExchangeContext& given) {
  if (given.communicator.size() == 1) return 0;
  double least = std::numeric_limits<double>::infinity();
  for_each_exchange(given, [&](const ExchangeEntry& entry, const ExchangeContext& context) {
    least = std::min(least, measure(entry, context, 1).second);
  });
  return least;
}

}  // namespace shardmat
