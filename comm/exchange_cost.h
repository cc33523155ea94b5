// What moving x costs between these ranks, whatever the matrix: a latency and a time a byte for each exchange.
#pragma once

#include <string>
#include <vector>

#include "comm/exchange.h"

namespace shardmat {

struct ExchangeCost {
  std::string exchange;
  double latency = 0;           ///< seconds of an exchange that moves next to nothing
  double seconds_per_byte = 0;  ///< that a rank receives, on top
};

/// Collective. Moves one entry, and then 1 MiB, between each rank and the ones before and behind it (all-gather: of each
/// rank), with each exchange that can be had here. None for one rank.
std::vector<ExchangeCost> measure_exchange_costs(const ExchangeContext& context);

}  // namespace shardmat
