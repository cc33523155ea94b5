// What an iteration is expected to take on any number of ranks. The constants come from one device and from moving entries
// between ranks (measure_performance.h), or for networks from their data sheet; never from the runs that are to be foretold.
//
//   product(n)  = as timed for shares of the rows, straight lines between: what fits the cache is faster than its share
//                                                                n: nonzeros of the rank with most
//   exchange(b) = latency + b·seconds_per_byte                   among the ranks that were measured (the first bytes at
//                                                                another rate), where each moves entries to all others:
//                                                                too much for few neighbours;
//                                                                b: what a rank receives or sends, whichever is most
//               = messages·network.latency + b/network.bandwidth beyond them; halo: a message from each neighbour,
//                                                                all-gather: a ring of P - 1
//   iteration   = the least over the exchanges of
//                 product(n) + exchange(b)                       if the rows that need others hold most nonzeros
//               = max(product(n) + split, exchange(b) + product(boundary))   else: x moves beside the product;
//               = max(product(n), exchange(b) + product(boundary))           with peer: one product, of which some rows wait
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/exchange/exchange_cost.h"
#include "partition/partitioner.h"

namespace shardmat {

/// Seconds of the product alone, on one device, by the number of nonzeros.
class ProductCost {
 public:
  struct Point {
    std::int64_t nnz;
    double seconds;
  };

  ProductCost() = default;  ///< nothing takes any time
  ProductCost(double latency, double seconds_per_nnz);
  /// Straight lines between points, of which nnz ascend; one that is slower than the next counts as fast as that.
  explicit ProductCost(std::vector<Point> points);

  double operator()(std::int64_t nnz) const;  ///< 0 for 0
  const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
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
