// The way of values from the triplets that ranks gave to the nonzeros of the rows that they own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/parcels.h"
#include "kernels/base/host_vector.h"

namespace shardmat {

class ValueRoute {
 public:
  /// A triplet on its way.
  struct Place {
    std::int64_t row, column;
  };
  /// What arrived: places in the order of the ranks, then of the triplets.
  struct Arrival {
    HostVector<Place> places;
  };

  /// Collective. `owner[i]`: the rank that gets triplet i. `places`: where they go.
  ValueRoute(std::span<const int> owner, std::span<const Place> places, Communicator& communicator, Arrival& arrival);
  /// Says which of the arrived values are added up: values order[starts[k]] … order[starts[k + 1] - 1] for nonzero k.
  void set_sums(HostVector<std::int64_t> order, HostVector<std::int64_t> starts);

  /// Triplets that this rank gave.
  std::int64_t given() const { return std::ssize(order_); }
  /// Collective: values of this rank's nonzeros from those of its triplets. Sums are in a fixed order.
  HostVector<double> bring(std::span<const double> given, Communicator& communicator) const;
  /// Host memory: 16 bytes a triplet, given or received, and 8 a nonzero.
  std::int64_t bytes() const;

 private:
  HostVector<std::int64_t> order_;    ///< the triplets by receiver
  std::vector<std::int64_t> counts_;  ///< of each receiver
  HostVector<std::int64_t> sum_order_, sum_starts_;
};

}  // namespace shardmat
