// How many small requests a second the service takes.
#include <fmt/format.h>

#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr int kConnections = 16;

double least_rate(int ranks) { return ranks == 1 ? 8000 : 4000; }

void run_on(int ranks, const Setup& setup, Outcome& outcome) {
  Server server(setup.library, ranks);
  const Resident matrix = server.load("m", setup.library.add("diagonals:n=1000,count=5,spacing=100"));
  const Products products = make_products(server, matrix, kConnections, kConnections);
  LoadOptions load{server.socket(), products.requests};
  load.connections = kConnections;
  load.seconds = setup.by_size(5.0, 0.5);
  const LoadResult result = run_load(load);
  outcome.count(result);
  outcome.at_least(fmt::format("requests of 8 kB, {} rank{}, 16 connections", ranks, ranks > 1 ? "s" : ""),
                   result.rate(0.1 * load.seconds, load.seconds), least_rate(ranks), Unit::per_second);
  outcome.report(fmt::format("latency, median, {} rank{}", ranks, ranks > 1 ? "s" : ""), median(result.latencies()),
                 Unit::seconds);
}

}  // namespace

void run_rate(const Setup& setup, Outcome& outcome) {
  if (setup.ranks > 0) return run_on(setup.ranks, setup, outcome);
  for (int ranks = 1; ranks <= setup.ranks_or(2); ++ranks) run_on(ranks, setup, outcome);
}

}  // namespace shardmat::tools::service_bench
