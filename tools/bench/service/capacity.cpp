#include "tools/bench/service/capacity.h"

namespace shardmat::tools::service_bench {

double measure_capacity(const Server& server, const Products& products, double seconds, Outcome& outcome) {
  LoadOptions load{server.socket(), products.requests};
  load.connections = 32;
  load.seconds = seconds;
  const LoadResult result = run_load(load);
  outcome.count(result);
  return result.rate(0.2 * seconds, seconds);
}

LoadResult run_open(const Server& server, const Products& products, double rate, double seconds, int connections,
                    Outcome& outcome) {
  LoadOptions load{server.socket(), products.requests};
  load.connections = connections;
  load.rate = rate;
  load.seconds = seconds;
  LoadResult result = run_load(load);
  outcome.count(result);
  return result;
}

}  // namespace shardmat::tools::service_bench
