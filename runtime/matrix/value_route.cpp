#include "runtime/matrix/value_route.h"

#include <numeric>
#include <utility>

#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {

TripletRoute::TripletRoute(std::span<const int> owner, std::span<const Place> places, Communicator& communicator,
                           Arrival& arrival) {
  const ItemsByRank<Place> out = communicator.run_agreed([&] {
    require_host_memory(40 * std::ssize(owner), "the triplets that are sent to the owners of their rows");
    HostVector<std::int64_t> all(owner.size());
    std::iota(all.begin(), all.end(), std::int64_t{0});
    const auto sorted = sort_by_rank<std::int64_t>(all, communicator.size(),
                                                   [&](std::int64_t i) { return owner[static_cast<std::size_t>(i)]; });
    order_ = sorted.items;
    counts_ = sorted.counts;
    ItemsByRank<Place> sorted_items{counts_, HostVector<Place>(order_.size())};
    for (std::size_t i = 0; i < order_.size(); ++i) sorted_items.items[i] = places[static_cast<std::size_t>(order_[i])];
    return sorted_items;
  });
  arrival.places = send_items(communicator, out).items;
}

void TripletRoute::set_sums(HostVector<std::int64_t> order, HostVector<std::int64_t> starts) {
  sum_order_ = std::move(order);
  sum_starts_ = std::move(starts);
}

HostVector<double> TripletRoute::bring(std::span<const double> given, Communicator& communicator) const {
  const ItemsByRank<double> out = communicator.run_agreed([&] {
    require_host_memory(8 * std::ssize(given), "values that are sent to the owners of their rows");
    ItemsByRank<double> sorted_items{counts_, HostVector<double>(order_.size())};
    for (std::size_t i = 0; i < order_.size(); ++i) sorted_items.items[i] = given[static_cast<std::size_t>(order_[i])];
    return sorted_items;
  });
  const HostVector<double> arrived = send_items(communicator, out).items;
  return communicator.run_agreed([&] {
    const auto nonzeros = static_cast<std::int64_t>(sum_starts_.size()) - 1;
    require_host_memory(8 * nonzeros, "the values of this rank's nonzeros");
    HostVector<double> values(static_cast<std::size_t>(nonzeros));
    parallel_ranges(nonzeros, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
      for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k) {
        double sum = 0;
        for (std::int64_t i = sum_starts_[k]; i < sum_starts_[k + 1]; ++i)
          sum += arrived[static_cast<std::size_t>(sum_order_[static_cast<std::size_t>(i)])];
        values[k] = sum;
      }
    });
    return values;
  });
}

}  // namespace shardmat
