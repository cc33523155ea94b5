// Predicts the time of an iteration on any number of ranks. Constants are measured on one device (measure_performance.h) and
// between ranks (exchange_cost.h); those of a network come from its data sheet. The predicted runs are never used as input.
//
//   product(n)  = interpolated between products that were timed with some of the rows (a small matrix may fit the cache):
//                 those of the slowest part of a matrix that is cut for some numbers of ranks
//                 n: nonzeros of the rank with most nonzeros
//   exchange(b) = latency + b·seconds_per_byte                    up to the measured number of ranks. The first bytes have
//                                                                 their own rate. Measured with every rank sending to all
//                                                                 other ranks: too high for few neighbours.
//               = messages·network.latency + b/network.bandwidth  with more ranks. Messages: one from each neighbour
//                                                                 (halo), P - 1 (all-gather, a ring)
//                 b: bytes that a rank receives or sends, whichever is more
//   iteration   = the least over all exchanges of
//                 product(n) + exchange(b)                          if boundary rows hold more than half of the nonzeros;
//                 max(product(n) + split, exchange(b) + product(boundary))   else: the exchange overlaps with the product;
//                 max(product(n), exchange(b) + product(boundary))           with peer: one product, boundary rows wait
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/exchange/exchange_cost.h"
#include "partition/source/partitioner.h"

namespace shardmat {

/// Seconds of a product on one device, without the exchange, as a function of the number of nonzeros.
class ProductCost {
 public:
  struct Point {
    std::int64_t nnz;
    double seconds;
  };

  ProductCost() = default;  ///< 0 seconds for every product
  ProductCost(double latency, double seconds_per_nnz);
  /// Interpolates linearly between the points. REQUIRES: ascending nnz. A point that is slower than the next point gets the
  /// time of the next. Below the first point the line goes on, but no nonzero takes less than there.
  explicit ProductCost(std::vector<Point> points);

  double operator()(std::int64_t nnz) const;  ///< 0 for 0
  const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
};

/// The network between ranks that were not measured.
struct Network {
  double latency = 0;    ///< seconds a message
  double bandwidth = 0;  ///< bytes a second for each rank, in each direction
};

struct PerformanceModel {
  ProductCost product;
  std::int64_t entry_bytes = 8;         ///< bytes of one entry of x
  bool overlaps = true;                 ///< interior rows that hold half of the nonzeros are multiplied while x moves
  bool overlaps_peer = true;            ///< the same for the exchange "peer"
  double split_latency = 0;             ///< seconds that a second stream adds to an iteration
  std::vector<ExchangeCost> exchanges;  ///< P ranks use those measured with the fewest ranks ≥ P, else with the most
  int measured_ranks = 1;               ///< up to this number of ranks `exchanges` hold, beyond it `network`
  std::optional<Network> network;
};

/// f64 on NVIDIA H200 joined by NVLink, any number of them, as bench scaling measures them: packed rows of 8.6 bytes a
/// nonzero at 4.2 TB/s, the halo by NCCL.
PerformanceModel h200_model();

struct Forecast {
  double product = 0, exchange = 0, iteration = 0;  ///< seconds
  std::string moved_by;                             ///< the exchange: halo, peer, …; "none" for one rank
  bool overlapped = false;
};

/// Throws Error(usage) if the model has no network and `ranks` is more than the measured number of ranks.
void require_links(const PerformanceModel& model, int ranks);
/// Predicts the time of an iteration. Throws as require_links().
Forecast forecast(const PerformanceModel& model, const PartitionQuality& quality, int ranks);

}  // namespace shardmat
