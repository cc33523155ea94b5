#include "runtime/timing/performance_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

/// True if the ranks' links are those that were measured.
bool inside(const PerformanceModel& model, int ranks) {
  if (model.exchanges.empty()) return false;
  return model.ranks_per_host == 0 ? ranks <= model.measured_ranks : model.hosts(ranks) == 1;
}

/// Measured between as many ranks as that, or nearly.
std::vector<ExchangeCost> measured_exchanges(const PerformanceModel& model, int ranks) {
  std::vector<ExchangeCost> found;
  const int alike = ranks_alike(model, ranks);
  for (const ExchangeCost& cost : model.exchanges)
    if (cost.ranks == alike) found.push_back(cost);
  return found;
}

/// What the ranks of a host exchange by messages, as it was measured; costs nothing where each is alone, or was not
/// measured.
ExchangeCost messages_within_host(const PerformanceModel& model, int ranks) {
  if (model.ranks_per_host > 1)
    for (const ExchangeCost& measured : measured_exchanges(model, std::min(ranks, model.ranks_per_host))) {
      const ExchangeEntry* const entry = find_exchange(measured.exchange);
      if (entry != nullptr && entry->means == ExchangeMeans::messages && entry->layout == ColumnLayout::compact)
        return measured;
    }
  return {};
}

/// An exchange over a compact map of ranks on several hosts, as it costs: some bytes move within a host, others between
/// hosts.
ExchangeCost cost_between_hosts(const PerformanceModel& model, const PartitionQuality& quality, int ranks,
                                const HostTraffic& between, const ExchangeEntry& entry) {
  const ExchangeCost inside = messages_within_host(model, ranks);
  const auto within = [&](double bytes) { return inside.seconds(std::max(0.0, bytes)) - inside.latency; };
  const auto bytes_of = [&](std::int64_t entries) { return static_cast<double>(entries * model.entry_bytes); };
  const double all = bytes_moved(model, quality, entry), outside = bytes_of(between.entries);
  ExchangeCost cost{ranks, std::string(entry.name)};
  double moving = 0;
  if (entry.means == ExchangeMeans::two_levels) {
    const int sharing = std::min(ranks, model.ranks_per_host);
    cost.latency = 2 * inside.latency + static_cast<double>(between.host_messages) * model.network->latency;
    moving = std::max(within(all - outside), bytes_of(between.host_entries) / sharing / model.network->bandwidth) +
             within(outside);
  } else {
    cost.latency = inside.latency + static_cast<double>(between.messages) * model.network->latency;
    moving = std::max(within(all - outside), outside / model.network->bandwidth);
  }
  cost.seconds_per_byte = all > 0 ? moving / all : 0;
  return cost;
}

/// What may bring each rank what its rows need.
std::vector<ExchangeCost> exchanges_between(const PerformanceModel& model, const PartitionQuality& quality, int ranks,
                                            const HostTraffic& between) {
  if (inside(model, ranks)) return measured_exchanges(model, ranks);
  std::vector<ExchangeCost> found;
  if (!model.network) return found;
  for (const ExchangeEntry& entry : exchanges()) {
    const bool two_levels = entry.means == ExchangeMeans::two_levels;
    if (entry.ranks == ExchangeRanks::one || (entry.means != ExchangeMeans::messages && !two_levels)) continue;
    if (two_levels && (model.ranks_per_host < 2 || between.host_entries < 0)) continue;
    if (entry.layout != ColumnLayout::gathered && model.ranks_per_host > 0) {
      found.push_back(cost_between_hosts(model, quality, ranks, between, entry));
      continue;
    }
    const auto messages = static_cast<double>(std::max<std::int64_t>(quality.neighbours_max, 0));
    const double partners = entry.layout == ColumnLayout::gathered ? ranks - 1 : messages;
    found.push_back({ranks, std::string(entry.name), partners * model.network->latency, 1 / model.network->bandwidth});
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

double PerformanceModel::unsteady(int ranks) const {
  if (unsteadiness.empty()) return 0;
  const auto quantile = [&](double share) {  // the least time that so many are at most
    const auto count = static_cast<double>(unsteadiness.size());
    const auto at = static_cast<std::size_t>(std::max(0.0, std::ceil(share * count) - 1));
    return unsteadiness[std::min(at, unsteadiness.size() - 1)];
  };
  return std::max(0.0, quantile(std::exp2(-1.0 / ranks)) - quantile(0.5));
}

void require_links(const PerformanceModel& model, int ranks) {
  if (ranks == 1 || model.network || inside(model, ranks)) return;
  if (model.hosts(ranks) > 1)
    throw Error(ErrorKind::usage,
                fmt::format("{} ranks are on {} hosts, and the links between hosts are not known; give the latency and "
                            "bandwidth of the network",
                            ranks, model.hosts(ranks)));
  throw Error(ErrorKind::usage,
              fmt::format("the links between {} ranks are not known, only between {}; give the latency and "
                          "bandwidth of the network, or say that a host holds as many",
                          ranks, model.measured_ranks),
              "ranks_per_host");
}

Forecast forecast(const PerformanceModel& model, const PartitionQuality& quality, int ranks, const HostTraffic& between) {
  Forecast alone;
  alone.product = alone.iteration = model.product(quality.nnz_max);
  alone.moved_by = "none";
  if (ranks == 1) return alone;
  require_links(model, ranks);
  std::vector<Forecast> found;
  for (const ExchangeCost& cost : exchanges_between(model, quality, ranks, between)) {
    Forecast& f = found.emplace_back(forecast_by(cost, model, quality));
    f.unsteady = f.product * model.unsteady(ranks);
    f.iteration += f.unsteady;
  }
  const auto key = [](const Forecast& f) { return std::pair(f.iteration, f.exchange); };
  return *std::min_element(found.begin(), found.end(),
                           [&](const Forecast& a, const Forecast& b) { return key(a) < key(b); });
}

}  // namespace shardmat
