// What moving x costs between these ranks, whatever the matrix: a latency and a time a byte for each exchange.
#pragma once

#include <string>
#include <vector>

#include "comm/exchange.h"

namespace shardmat {

struct ExchangeCost {
  int ranks = 1;  ///< between which it was measured
  std::string exchange;
  double latency = 0;           ///< seconds of an exchange that moves next to nothing
  double seconds_per_byte = 0;  ///< that a rank receives, and sends, on top
};

/// Collective. Each rank gets one entry of each other, and then in all 8 MiB, by each exchange that can be had here. None
/// for one rank.
std::vector<ExchangeCost> measure_exchange_costs(const ExchangeContext& context);

}  // namespace shardmat
