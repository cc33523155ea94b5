// How long requests wait when they come at random times, against a simulation of the same arrivals.
#include <fmt/format.h>

#include <algorithm>

#include "tools/bench/service/capacity.h"
#include "tools/bench/service/floor.h"
#include "tools/bench/service/scenario.h"
#include "tools/bench/service/simulation.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr double kShares[] = {0.5, 0.7}, kMostOverSimulated = 1.5;
constexpr int kConnections = 128;

double idle_seconds(Server& server, const Products& products, int runs, Outcome& outcome) {
  Connection connection(server.socket());
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    const Request& request = products.requests[0];
    const double began = now();
    const Reply reply = connection.ask(request);
    times.push_back(now() - began);
    outcome.count(reply.status, reply.status == 200 && is_right(request, reply));
  }
  return median(times);
}

}  // namespace

void run_latency(const Setup& setup, Outcome& outcome) {
  Server server(setup.library, setup.ranks_or(1));
  const Resident matrix = server.load("m", setup.library.add(setup.matrix_or("elasticity:n=24", "elasticity:n=8")));
  const Products products = make_products(server, matrix, 32, 1);
  const double capacity = measure_capacity(server, products, setup.by_size(4.0, 0.4), outcome);
  const int alone = setup.by_size(500, 30);
  const double cpu = server.front_cpu_seconds(), idle = idle_seconds(server, products, alone, outcome);
  const double front = (server.front_cpu_seconds() - cpu) / alone, turn = 2 * wake_up_seconds(setup.by_size(2000, 100));
  const double delay = std::max(0.0, idle - matrix.seconds_of_one() - front - turn);
  const SimulatedService model{matrix.table(), front, turn, delay};
  outcome.report("capacity with 32 clients", capacity, Unit::per_second);
  outcome.report("latency of a client alone, median", idle, Unit::seconds);
  outcome.report("processor time of the front end a request", front, Unit::seconds);
  for (const double share : kShares) {
    const LoadResult load = run_open(server, products, share * capacity, setup.by_size(8.0, 0.5), kConnections, outcome);
    std::vector<double> arrivals;
    for (const Sample& sample : load.samples) arrivals.push_back(sample.intended);
    std::sort(arrivals.begin(), arrivals.end());
    const std::vector<double> simulated = simulate(model, arrivals);
    const std::string at = fmt::format("at {:.0f} %: ", 100 * share);
    outcome.at_most(at + "median latency", median(load.latencies()), kMostOverSimulated * median(simulated), Unit::seconds);
    outcome.report(at + "median latency, simulated", median(simulated), Unit::seconds);
    outcome.report(at + "99 % of the latencies", percentile(load.latencies(), 0.99), Unit::seconds);
    outcome.report(at + "99 % of the latencies, simulated", percentile(simulated, 0.99), Unit::seconds);
  }
}

}  // namespace shardmat::tools::service_bench
