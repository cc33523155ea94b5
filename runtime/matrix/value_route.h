// The way of values from the order in which ranks gave them to the nonzeros of the rows that they own.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/items_by_rank.h"
#include "kernels/base/host_vector.h"
#include "runtime/maps/range_route.h"

namespace shardmat {

class ValueRoute {
 public:
  virtual ~ValueRoute() = default;
  /// Values that this rank gave.
  virtual std::int64_t given() const = 0;
  /// Collective: values of this rank's nonzeros from those that it gave.
  virtual HostVector<double> bring(std::span<const double> given, Communicator& communicator) const = 0;
};

/// Of rows that other ranks own: their nonzeros move as they were given.
class RowValueRoute final : public ValueRoute {
 public:
  explicit RowValueRoute(RangeRoute nonzeros) : nonzeros_(std::move(nonzeros)) {}
  std::int64_t given() const override { return nonzeros_.given(); }
  HostVector<double> bring(std::span<const double> given, Communicator& communicator) const override {
    return nonzeros_.bring(given, 1, communicator);
  }

 private:
  RangeRoute nonzeros_;
};

/// Of triplets, which the owners of their rows add up. Host memory: 16 bytes a triplet, given or received, and 8 a nonzero.
class TripletRoute final : public ValueRoute {
 public:
  /// A triplet on its way.
  struct Place {
    std::int64_t row, column;
  };
  /// The triplets that this rank received: by rank, then in the order in which the rank gave them.
  struct Arrival {
    HostVector<Place> places;
  };

  /// Collective. `owner[i]`: the rank that gets triplet i. `places`: where they go.
  TripletRoute(std::span<const int> owner, std::span<const Place> places, Communicator& communicator, Arrival& arrival);
  /// Says which of the arrived values are added up: values order[starts[k]] … order[starts[k + 1] - 1] for nonzero k.
  void set_sums(HostVector<std::int64_t> order, HostVector<std::int64_t> starts);

  std::int64_t given() const override { return std::ssize(order_); }
  /// Sums are in a fixed order.
  HostVector<double> bring(std::span<const double> given, Communicator& communicator) const override;

 private:
  HostVector<std::int64_t> order_;    ///< this rank's triplets, sorted by receiver
  std::vector<std::int64_t> counts_;  ///< triplets for each receiver
  HostVector<std::int64_t> sum_order_, sum_starts_;
};

}  // namespace shardmat
