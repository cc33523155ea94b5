#include "comm/exchange_cost.h"

#include <algorithm>
#include <numeric>

namespace shardmat {
namespace {

constexpr std::int64_t kFew = 1 << 20, kMany = 16 << 20;  ///< bytes

/// Bytes that a rank receives when all ranks need so many entries of every other, and the seconds that takes.
std::pair<double, double> measure(std::string_view name, const ExchangeContext& context, std::int64_t entries) {
  Communicator& communicator = context.communicator;
  std::vector<std::int64_t> starts(static_cast<std::size_t>(communicator.size()) + 1);
  for (std::size_t p = 0; p < starts.size(); ++p) starts[p] = static_cast<std::int64_t>(p) * entries;
  std::vector<std::int64_t> columns(static_cast<std::size_t>(starts.back()));
  std::iota(columns.begin(), columns.end(), std::int64_t{0});
  const auto exchange = make_exchange(name, context, {starts}, columns);
  const auto bytes = static_cast<double>(communicator.all_reduce(exchange->bytes_received(), Reduction::max));
  return {bytes, time_exchange(*exchange, context)};
}

}  // namespace

std::vector<ExchangeCost> measure_exchange_costs(const ExchangeContext& given) {
  ExchangeContext context = given;
  context.type = ValueType::f64;
  context.width = 1;
  std::vector<ExchangeCost> costs;
  const int ranks = context.communicator.size();
  if (ranks == 1) return costs;
  for (const ExchangeEntry& entry : exchanges()) {
    if (entry.name == "none") continue;
    if (entry.name == "peer" && !reaches_peers(context)) continue;
    const auto [none, latency] = measure(entry.name, context, 1);
    const auto [few, seconds_of_few] = measure(entry.name, context, kFew / 8 / (ranks - 1));
    const auto [many, seconds] = measure(entry.name, context, kMany / 8 / (ranks - 1));
    const auto slope = [](double bytes, double of_them) { return std::max(0.0, of_them) / std::max(bytes, 1.0); };
    costs.push_back({ranks, std::string(entry.name), latency, slope(many - few, seconds - seconds_of_few), few,
                     slope(few - none, seconds_of_few - latency)});
  }
  return costs;
}

}  // namespace shardmat
