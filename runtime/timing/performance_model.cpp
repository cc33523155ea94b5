#include "runtime/timing/performance_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

/// Between how many ranks exchanges were measured that are most like those between `ranks`.
int ranks_alike(const PerformanceModel& model, int ranks) {
  int most = 0, fewest = std::numeric_limits<int>::max();
  for (const ExchangeCost& cost : model.exchanges) {
    most = std::max(most, cost.ranks);
    if (cost.ranks >= ranks) fewest = std::min(fewest, cost.ranks);
  }
  return most >= ranks ? fewest : most;
}

/// Bytes that a rank receives or sends, whichever is most.
double bytes_moved(const PerformanceModel& model, const PartitionQuality& quality, const ExchangeEntry& by) {
  const std::int64_t entries =
      by.layout == ColumnLayout::gathered ? quality.allgather_max : std::max(quality.halo_max, quality.sent_max);
  return static_cast<double>(entries) * static_cast<double>(model.entry_bytes);
}

/// With x moved by this exchange, as it costs. One product overlaps with writes into peer memory if its rows are packed;
/// with other exchanges the rows are cut in two.
Forecast forecast_by(const ExchangeCost& cost, const PerformanceModel& model, const PartitionQuality& quality) {
  const ExchangeEntry* const entry = find_exchange(cost.exchange);
  if (entry == nullptr) throw Error(ErrorKind::internal, "the cost of an exchange names none");
  const bool peer = entry->means == ExchangeMeans::peer_memory;
  Forecast f;
  f.moved_by = cost.exchange;
  f.overlapped = (model.overlaps || (model.overlaps_peer && peer)) && quality.boundary_nnz_max >= 0 &&
                 2 * quality.boundary_nnz_max <= quality.nnz_max;
  f.product = model.product(quality.nnz_max);
  f.exchange = cost.seconds(bytes_moved(model, quality, *entry));
  const double beside = f.product + (peer ? 0 : model.split_latency);
  f.iteration =
      f.overlapped ? std::max(beside, f.exchange + model.product(quality.boundary_nnz_max)) : f.product + f.exchange;
  return f;
}

/// What may bring each rank what its rows need.
std::vector<ExchangeCost> exchanges_between(const PerformanceModel& model, const PartitionQuality& quality, int ranks) {
  std::vector<ExchangeCost> found;
  if (ranks <= model.measured_ranks && !model.exchanges.empty()) {
    const int alike = ranks_alike(model, ranks);
    for (const ExchangeCost& cost : model.exchanges)
      if (cost.ranks == alike) found.push_back(cost);
  } else if (const auto& network = model.network) {
    const auto messages = static_cast<double>(std::max<std::int64_t>(quality.neighbours_max, 0));
    for (const ExchangeEntry& entry : exchanges()) {
      if (entry.ranks == ExchangeRanks::one || entry.means != ExchangeMeans::messages) continue;
      const double partners = entry.layout == ColumnLayout::gathered ? ranks - 1 : messages;
      found.push_back({ranks, std::string(entry.name), partners * network->latency, 1 / network->bandwidth});
    }
  }
  return found;
}

}  // namespace

ProductCost::ProductCost(double latency, double seconds_per_nnz) {
  constexpr std::int64_t kMany = 1'000'000'000;
  points_ = {{0, latency}, {kMany, latency + static_cast<double>(kMany) * seconds_per_nnz}};
}

ProductCost::ProductCost(std::vector<Point> points) : points_(std::move(points)) {
  for (std::size_t i = points_.size(); i-- > 1;)
    points_[i - 1].seconds = std::min(points_[i - 1].seconds, points_[i].seconds);
}

double ProductCost::operator()(std::int64_t nnz) const {
  if (nnz == 0 || points_.empty()) return 0;
  if (points_.size() == 1) return points_[0].seconds * static_cast<double>(nnz) / static_cast<double>(points_[0].nnz);
  const auto to = std::find_if(points_.begin() + 1, points_.end() - 1, [&](const Point& p) { return p.nnz >= nnz; });
  const Point &low = to[-1], &high = to[0];
  const double slope = (high.seconds - low.seconds) / static_cast<double>(high.nnz - low.nnz);
  const double on_line = low.seconds + static_cast<double>(nnz - low.nnz) * slope;
  const Point& least = points_[0];
  if (nnz >= least.nnz) return on_line;
  return std::max(on_line, least.seconds * static_cast<double>(nnz) / static_cast<double>(least.nnz));
}

PerformanceModel h200_model() {
  PerformanceModel model;
  model.product = ProductCost(2e-6, 8.6 / 4.2e12);
  model.split_latency = 3e-6;
  model.exchanges = {{2, "halo", 12e-6, 1 / 150e9}};
  model.measured_ranks = std::numeric_limits<int>::max();
  return model;
}

void require_links(const PerformanceModel& model, int ranks) {
  if (ranks == 1 || model.network || (ranks <= model.measured_ranks && !model.exchanges.empty())) return;
  throw Error(ErrorKind::usage,
              fmt::format("the links between {} ranks are not known, only between {}; give the latency and "
                          "bandwidth of the network",
                          ranks, model.measured_ranks));
}

Forecast forecast(const PerformanceModel& model, const PartitionQuality& quality, int ranks) {
  Forecast alone;
  alone.product = alone.iteration = model.product(quality.nnz_max);
  alone.moved_by = "none";
  if (ranks == 1) return alone;
  require_links(model, ranks);
  std::vector<Forecast> found;
  for (const ExchangeCost& cost : exchanges_between(model, quality, ranks))
    found.push_back(forecast_by(cost, model, quality));
  const auto key = [](const Forecast& f) { return std::pair(f.iteration, f.exchange); };
  return *std::min_element(found.begin(), found.end(),
                           [&](const Forecast& a, const Forecast& b) { return key(a) < key(b); });
}

}  // namespace shardmat
