// The service as a model: requests pass the front end one after another, wait for a product, and pass the front end again.
// The queue and the rule of merging are the service's own code, with a simulated clock.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <span>
#include <vector>

#include "tools/serve/ranks/batching.h"

namespace shardmat::tools::service_bench {

struct SimulatedService {
  serve::WidthTable table;   ///< seconds of products with their copies
  double front_seconds = 0;  ///< of the front end for one request, half before and half after its product
  double turn_seconds = 0;   ///< between the end of a product and the start of the next one
  double delay_seconds = 0;  ///< that every request takes in addition, and in which nothing is busy
};

/// Latency of requests that arrive at these times, each with one column. REQUIRES: times ascend.
std::vector<double> simulate(const SimulatedService& service, std::span<const double> arrivals);

}  // namespace shardmat::tools::service_bench
