// What an iteration is expected to take on any number of ranks. The constants come from one device and from moving entries
// between ranks (measure_performance.h), or for networks from their data sheet; never from the runs that are to be foretold.
//
//   product(n)  = latency + n·seconds_per_nnz                    n: nonzeros of the rank with most
//   exchange(b) = latency + b·seconds_per_byte                   among the ranks that were measured (the first bytes at
//                                                                another rate), where each moves entries to all others:
//                                                                too much for few neighbours;
//                                                                b: what a rank receives or sends, whichever is most
//               = messages·network.latency + b/network.bandwidth beyond them; halo: a message from each neighbour,
//                                                                all-gather: a ring of P - 1
//   iteration   = the least over the exchanges of
//                 product(n) + exchange(b)                       if the rows that need others hold most nonzeros
//               = max(product(n) + split, exchange(b) + product(boundary))   else: x moves beside the product
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/exchange_cost.h"
#include "partition/partitioner.h"

namespace shardmat {

/// Of the product alone, on one device.
struct ProductCost {
  double latency = 0, seconds_per_nnz = 0;
  double operator()(std::int64_t nnz) const { return nnz == 0 ? 0 : latency + static_cast<double>(nnz) * seconds_per_nnz; }
};

/// Between ranks that were not measured, in each direction.
struct Network {
  double latency = 0;    ///< seconds a message
  double bandwidth = 0;  ///< bytes a second a rank
};

struct PerformanceModel {
  ProductCost product;
  std::int64_t entry_bytes = 8;         ///< of x
  bool overlaps = true;                 ///< rows that need no x of others are multiplied while x moves, if they hold half
  bool overlaps_peer = true;            ///< likewise while x moves by "peer"
  double split_latency = 0;             ///< seconds that a second stream adds to an iteration
  std::vector<ExchangeCost> exchanges;  ///< those between the fewest ranks that are enough count, else between the most
  int measured_ranks = 1;               ///< that can meet by these
  std::optional<Network> network;
};

/// f64 on NVIDIA H200 joined by NVLink, any number of them, as bench scaling measures them: packed rows of 8.6 bytes a
/// nonzero at 4.2 TB/s, the halo by NCCL.
PerformanceModel h200_model();

struct Forecast {
  double product = 0, exchange = 0, iteration = 0;  ///< seconds
  std::string moved_by;                             ///< halo, peer, allgather; none for one rank
  bool overlapped = false;
};

/// Throws Error(usage) for more ranks than were measured without a network.
void require_links(const PerformanceModel& model, int ranks);
/// Throws likewise.
Forecast forecast(const PerformanceModel& model, const PartitionQuality& quality, int ranks);

}  // namespace shardmat
