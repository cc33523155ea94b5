// The cost of moving x between the ranks, independent of the matrix. Each exchange has a latency, a time per byte for the
// first bytes (few_bytes), and a time per byte for all further bytes.
//
// Threads: one thread of each rank; what measures is collective.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "comm/exchange/exchange.h"

namespace shardmat {

struct ExchangeCost {
  int ranks = 1;                       ///< number of ranks in the measurement
  std::string exchange;                ///< name of the exchange
  double latency = 0;                  ///< seconds of an exchange that moves almost nothing
  double seconds_per_byte = 0;         ///< for each byte beyond few_bytes that a rank receives (and sends)
  double few_bytes = 0;                ///< number of first bytes that have another rate
  double seconds_per_byte_of_few = 0;  ///< for each of these first bytes

  double seconds(double bytes) const {
    return latency + std::min(bytes, few_bytes) * seconds_per_byte_of_few +
           std::max(bytes - few_bytes, 0.0) * seconds_per_byte;
  }
};

/// Measures each exchange that is possible here: each rank receives one entry from each other rank, then 1 MiB in all, then
/// 16 MiB in all. Returns nothing for one rank. Collective.
std::vector<ExchangeCost> measure_exchange_costs(const ExchangeContext& context);
/// Seconds in which the fastest exchange moves one entry between each pair of ranks; 0 for one rank. Collective.
double measure_exchange_latency(const ExchangeContext& context);

}  // namespace shardmat
