#include "runtime/performance_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

constexpr std::int64_t kSector = 32;  ///< bytes

struct Move {
  double seconds;
  std::string by;
};

/// Between how many ranks exchanges were measured that are most like those between `ranks`.
int ranks_alike(const PerformanceModel& model, int ranks) {
  int most = 0, fewest = std::numeric_limits<int>::max();
  for (const ExchangeCost& cost : model.exchanges) {
    most = std::max(most, cost.ranks);
    if (cost.ranks >= ranks) fewest = std::min(fewest, cost.ranks);
  }
  return most >= ranks ? fewest : most;
}

/// The fastest way to bring each rank what its rows need. `scattered`: the entries that others need lie where they are in
/// the matrix; else, at rows that were moved, together.
Move fastest_move(const PerformanceModel& model, const PartitionQuality& quality, int ranks, bool scattered) {
  const auto bytes = [&](std::int64_t entries) {
    return static_cast<double>(entries) * static_cast<double>(model.entry_bytes);
  };
  const double halo = bytes(std::max(quality.halo_max, quality.sent_max)), all = bytes(quality.allgather_max);
  // Reading other GPUs' memory brings whole sectors: of f64 entries so many, of others no fewer bytes than this.
  const auto of_sector = static_cast<double>(std::min(kSector, 4 * model.entry_bytes));
  const double sectors = static_cast<double>(std::max(quality.halo_sectors_max, quality.sent_sectors_max));
  const double read = scattered ? std::max(halo, of_sector * sectors) : halo;
  const auto moved = [&](std::string_view by) { return by == "allgather" ? all : by == "peer" ? read : halo; };
  std::vector<Move> moves;
  if (ranks <= model.measured_ranks && !model.exchanges.empty()) {
    const int among = ranks_alike(model, ranks);
    for (const ExchangeCost& cost : model.exchanges)
      if (cost.ranks == among) moves.push_back({cost.latency + moved(cost.exchange) * cost.seconds_per_byte, cost.exchange});
  } else if (model.network) {
    const Network& n = *model.network;
    const auto messages = static_cast<double>(std::max<std::int64_t>(quality.neighbours_max, 0));
    moves.push_back({messages * n.latency + halo / n.bandwidth, "halo"});
    moves.push_back({(ranks - 1) * n.latency + all / n.bandwidth, "allgather"});
  }
  return *std::min_element(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.seconds < b.seconds; });
}

}  // namespace

PerformanceModel h200_model() {
  PerformanceModel model;
  model.product = {2e-6, 8.6 / 4.2e12};
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
  Forecast f;
  f.product = model.product(quality.nnz_max);
  f.iteration = f.product;
  f.moved_by = "none";
  if (ranks == 1) return f;
  require_links(model, ranks);
  f.overlapped = model.overlaps && quality.boundary_nnz_max >= 0 && 2 * quality.boundary_nnz_max <= quality.nnz_max;
  const Move move = fastest_move(model, quality, ranks, !f.overlapped);
  f.exchange = move.seconds;
  f.moved_by = move.by;
  f.iteration = f.overlapped
                    ? std::max(f.product + model.split_latency, f.exchange + model.product(quality.boundary_nnz_max))
                    : f.product + f.exchange;
  return f;
}

}  // namespace shardmat
