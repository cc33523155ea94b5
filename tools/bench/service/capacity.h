// How many products a second the service finishes when 32 clients always wait.
#pragma once

#include "tools/bench/service/figures.h"
#include "tools/bench/service/materials.h"

namespace shardmat::tools::service_bench {

double measure_capacity(const Server& server, const Products& products, double seconds, Outcome& outcome);

/// Requests at random times, at so many a second.
LoadResult run_open(const Server& server, const Products& products, double rate, double seconds, int connections,
                    Outcome& outcome);

}  // namespace shardmat::tools::service_bench
