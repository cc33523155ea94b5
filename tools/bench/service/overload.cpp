// Three times as many requests as the service can answer: it must refuse the surplus quickly and keep its speed.
#include <algorithm>

#include "tools/bench/service/capacity.h"
#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr double kOverload = 3, kNormal = 0.5, kLeastGoodput = 0.95, kRefusedSeconds = 0.005, kMostAfter = 2;
constexpr int kConnections = 512;

/// More solves at once than a client may have: as many as it may have are solved, with the same bits as alone, and the
/// surplus is refused.
void overload_with_solves(const Setup& setup, Server& server, double seconds, Outcome& outcome) {
  constexpr std::int64_t kVectors = 8;
  constexpr int kSolves = 96;
  const Resident matrix = load_solvable(server, setup.library.add("elasticity:n=8,clamp=0.05"), "s");
  const HostVector<std::byte> b = random_vectors(matrix, kVectors, 1);
  std::vector<Request> solves;
  std::vector<HostVector<std::byte>> x;
  Connection connection(server.socket());
  for (std::size_t i = 0; i < kVectors; ++i) {
    solves.push_back(numbers_request("POST", "/v1/matrices/s/solve?method=cg&preconditioner=jacobi&alone=1&wait=100",
                                     std::span(b).subspan(i * matrix.x_bytes(), matrix.x_bytes())));
    const Reply reply = connection.ask(solves.back());
    outcome.count(reply.status, reply.status == 200);
    x.emplace_back(reply.body.begin(), reply.body.end());
  }
  for (std::size_t i = 0; i < kVectors; ++i) solves[i].expected = x[i];
  LoadOptions options{server.socket(), solves};
  options.connections = kSolves, options.seconds = seconds, options.patience = 120;
  const LoadResult load = run_load(options);
  outcome.count(load);
  outcome.report("solves of 96 clients, answered", static_cast<double>(load.latencies(200).size()), Unit::count);
  outcome.report("solves of 96 clients, refused (429)", static_cast<double>(load.latencies(429).size()), Unit::count);
  outcome.at_most("99 % of these refusals", percentile(load.latencies(429), 0.99), kRefusedSeconds, Unit::seconds);
}

}  // namespace

void run_overload(const Setup& setup, Outcome& outcome) {
  Server server(setup.library, setup.ranks_or(1), {"--max-queue-ms", setup.by_size("50", "3")});
  const std::string name = setup.matrix_or("random:n=4000,row_nnz=1000", "random:n=2000,row_nnz=500");
  const Resident matrix = server.load("m", setup.library.add(name));
  const Products products = make_products(server, matrix, 32, 1);
  const double seconds = setup.by_size(5.0, 0.5);
  const double capacity = measure_capacity(server, products, seconds, outcome);
  const LoadResult before = run_open(server, products, kNormal * capacity, seconds, kConnections, outcome);
  const LoadResult load = run_open(server, products, kOverload * capacity, seconds, kConnections, outcome);
  const LoadResult after = run_open(server, products, kNormal * capacity, seconds, kConnections, outcome);
  std::vector<double> later;
  for (const Sample& sample : after.samples)
    if (sample.intended >= after.began + std::min(1.0, seconds / 2)) later.push_back(sample.latency());
  outcome.report("capacity with 32 clients", capacity, Unit::per_second);
  outcome.at_least("answers at 3 × the capacity, over the capacity", load.rate(0.2 * seconds, seconds) / capacity,
                   kLeastGoodput, Unit::ratio);
  outcome.report("refused (429)", static_cast<double>(load.latencies(429).size()), Unit::count);
  outcome.at_most("99 % of the refusals", percentile(load.latencies(429), 0.99), kRefusedSeconds, Unit::seconds);
  outcome.report("99 % of the answers", percentile(load.latencies(), 0.99), Unit::seconds);
  outcome.at_most("99 % of the latencies 1 s later, over before",
                  percentile(later, 0.99) / percentile(before.latencies(), 0.99), kMostAfter, Unit::ratio);
  overload_with_solves(setup, server, seconds, outcome);
}

}  // namespace shardmat::tools::service_bench
