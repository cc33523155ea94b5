// Processor time of a service that nobody asks.
#include <chrono>
#include <thread>

#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {

void run_idle(const Setup& setup, Outcome& outcome) {
  constexpr double kMostShare = 0.01;
  Server server(setup.library, setup.ranks_or(2));
  const Resident matrix = server.load("m", setup.library.add(setup.matrix_or("elasticity:n=40", "elasticity:n=8")));
  outcome.count(200, !make_products(server, matrix, 1, 1).y.empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const double began = now(), before = server.totals().cpu_seconds;
  std::this_thread::sleep_for(std::chrono::duration<double>(setup.by_size(20.0, 1.0)));
  const double share = (server.totals().cpu_seconds - before) / (now() - began);
  outcome.at_most("processor time of all processes, share of a core", share, kMostShare, Unit::share);
}

}  // namespace shardmat::tools::service_bench
