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
//   With R ranks a host known, P ranks are on ⌈P/R⌉ hosts. Ranks of one host exchange as measured, whatever their number.
//   Between hosts
//   exchange    = halo:       inside.latency + m·network.latency + max(inside.seconds(b - c) - inside.latency, c/bandwidth)
//                 all-gather: (P - 1)·network.latency + b/network.bandwidth: a ring, each step as slow as its slowest link
//                 two_level:  2·inside.latency + M·network.latency
//                             + max(inside.seconds(b - c) - inside.latency, C/(R·bandwidth))
//                             + inside.seconds(c) - inside.latency; with several ranks a host
//                 m, c: most ranks of other hosts that send to a rank, and most bytes of x that it moves to or from them;
//                 M, C: the same of hosts: most hosts that send to a host, and most bytes, each once for each host. The
//                 ranks of a host share them evenly, and then give each other what they need; inside: exchanges measured
//                 between min(P, R) ranks. Messages are started one after another; both kinds of links move bytes at the
//                 same time.
//   iteration   = unsteady(P) plus the least over all exchanges of
//                 product(n) + exchange(b)                          if boundary rows hold more than half of the nonzeros;
//                 max(product(n) + split, exchange(b) + product(boundary))   else: the exchange overlaps with the product;
//                 max(product(n), exchange(b) + product(boundary))           with peer: one product, boundary rows wait
//   unsteady(P) = product(n)·(Q(2^(-1/P)) - Q(1/2)): an iteration waits for the slowest of P ranks, whose times vary as
//   those
//                 on one rank did, each for itself. Of the largest of P such times half are below their quantile 2^(-1/P).
//                 Q: quantiles of iterations on one rank, over their median. 0 for one rank.
//
//   By hand, 2 × 2: four ranks on two hosts, product 100 µs, inside 5 µs + 10 GB/s, network 20 µs and 1 GB/s; each rank
//   needs 1,000 entries of 8 bytes, 400 of them from 1 rank of the other host: 5 + 1·20 + max(4,800/10e9, 3,200/1e9) = 28.2
//   µs. A host needs 700 entries from the other one: by two_level 2·5 + 1·20 + max(4,800/10e9, 5,600/2e9) + 3,200/10e9 =
//   33.12 µs. If each rank needs entries of both ranks of the other host, halo takes 20 µs more, and two_level is faster.
//   One time in ten is 1.5 times the median: 2^(-1/4) = 0.84, Q = 1, so unsteady is 0; with 16 ranks 2^(-1/16) = 0.958: 50
//   µs.
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

/// What the rank, and the host, that needs most needs of other hosts.
struct HostTraffic {
  std::int64_t entries = 0;   ///< most entries of x that a rank receives from other hosts, or sends to them
  std::int64_t messages = 0;  ///< most ranks of other hosts that a rank receives from
  /// Most entries that a host receives from other hosts, or sends to them, each once for each host; -1: not known.
  std::int64_t host_entries = -1;
  std::int64_t host_messages = 0;  ///< most hosts that a host receives from
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
  int ranks_per_host = 0;  ///< 0: not known; then all ranks beyond the measured ones are thought to be on hosts of their own
  /// Times of iterations on one rank over their median, ascending; empty: all ranks are steady.
  std::vector<double> unsteadiness;

  int hosts(int ranks) const { return ranks_per_host == 0 ? 1 : (ranks + ranks_per_host - 1) / ranks_per_host; }
  /// Q(2^(-1/ranks)) - Q(1/2), as above; never negative.
  double unsteady(int ranks) const;
};

/// f64 on NVIDIA H200 joined by NVLink, any number of them, as bench scaling measures them: packed rows of 8.6 bytes a
/// nonzero at 4.2 TB/s, the halo by NCCL.
PerformanceModel h200_model();

struct Forecast {
  double product = 0, exchange = 0, iteration = 0;  ///< seconds
  double unsteady = 0;                              ///< seconds of the iteration that ranks wait because times vary
  std::string moved_by;                             ///< the exchange: halo, peer, …; "none" for one rank
  bool overlapped = false;
};

/// Throws Error(usage) if the model has no network and `ranks` need one: they are on several hosts, or more than were
/// measured and it is not known how many fit on a host.
void require_links(const PerformanceModel& model, int ranks);
/// Predicts the time of an iteration. Throws as require_links(). `between`: looked at if the ranks are on several hosts.
Forecast forecast(const PerformanceModel& model, const PartitionQuality& quality, int ranks,
                  const HostTraffic& between = {});

}  // namespace shardmat
