// What moving x costs between these ranks, whatever the matrix: for each exchange a latency and a time a byte, which is
// another for the first of them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "comm/exchange/exchange.h"

namespace shardmat {

struct ExchangeCost {
  int ranks = 1;  ///< between which it was measured
  std::string exchange;
  double latency = 0;           ///< seconds of an exchange that moves next to nothing
  double seconds_per_byte = 0;  ///< that a rank receives, and sends, on top; beyond few_bytes
  double few_bytes = 0;
  double seconds_per_byte_of_few = 0;

  double seconds(double bytes) const {
    return latency + std::min(bytes, few_bytes) * seconds_per_byte_of_few +
           std::max(bytes - few_bytes, 0.0) * seconds_per_byte;
  }
};

/// Collective. Each rank gets one entry of each other, and then in all 1 and 16 MiB, by each exchange that can be had here.
/// None for one rank.
std::vector<ExchangeCost> measure_exchange_costs(const ExchangeContext& context);
/// Collective. Seconds of the fastest exchange of one entry with each other rank; 0 for one rank.
double measure_exchange_latency(const ExchangeContext& context);

}  // namespace shardmat
