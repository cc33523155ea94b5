#include "comm/exchange_cost.h"

#include <algorithm>
#include <numeric>

namespace shardmat {
namespace {

constexpr std::int64_t kLarge = std::int64_t{8} << 20;  ///< bytes

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
    const auto [few, latency] = measure(entry.name, context, 1);
    const auto [many, seconds] = measure(entry.name, context, kLarge / 8 / (ranks - 1));
    costs.push_back({ranks, std::string(entry.name), latency, std::max(0.0, seconds - latency) / std::max(many - few, 1.0)});
  }
  return costs;
}

}  // namespace shardmat
