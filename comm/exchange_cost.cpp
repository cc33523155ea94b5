#include "comm/exchange_cost.h"

#include <algorithm>

namespace shardmat {
namespace {

constexpr std::int64_t kLarge = std::int64_t{1} << 20;  ///< bytes

/// Bytes that the busiest rank receives when ranks need so many entries of their neighbours, and the seconds that takes.
std::pair<double, double> measure(std::string_view name, const ExchangeContext& context, std::int64_t entries) {
  Communicator& communicator = context.communicator;
  std::vector<std::int64_t> starts(static_cast<std::size_t>(communicator.size()) + 1);
  for (std::size_t p = 0; p < starts.size(); ++p) starts[p] = static_cast<std::int64_t>(p) * entries;
  const auto rank = static_cast<std::size_t>(communicator.rank());
  std::vector<std::int64_t> columns;
  for (std::int64_t c = std::max<std::int64_t>(starts[rank] - entries, 0);
       c < std::min(starts[rank + 1] + entries, starts.back()); ++c)
    columns.push_back(c);
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
  if (context.communicator.size() == 1) return costs;
  for (const ExchangeEntry& entry : exchanges()) {
    if (entry.name == "none") continue;
    if (entry.name == "peer" && !reaches_peers(context)) continue;
    const auto [few, latency] = measure(entry.name, context, 1);
    const auto [many, seconds] = measure(entry.name, context, kLarge / 8);
    costs.push_back({std::string(entry.name), latency, std::max(0.0, seconds - latency) / std::max(many - few, 1.0)});
  }
  return costs;
}

}  // namespace shardmat
