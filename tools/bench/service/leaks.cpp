// Memory, descriptors and shared memory after many loads, requests and connections.
#include <chrono>
#include <thread>

#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr double kMostBytes = 1e6;

class Work {
 public:
  Work(const Setup& setup, Server& server, Outcome& outcome)
      : server_(server),
        outcome_(outcome),
        file_(setup.library.add("elasticity:n=5")),
        matrix_(server.load("m", file_)),
        products_(make_products(server, matrix_, 16, 16)) {}

  void load_and_unload(int times) {
    for (int i = 0; i < times; ++i) {
      server_.load("other", file_);
      server_.unload("other");
    }
  }
  void request(std::int64_t requests, bool fresh_connections) {
    LoadOptions load{server_.socket(), products_.requests};
    load.connections = 16;
    load.most = requests;
    load.fresh_connections = fresh_connections;
    outcome_.count(run_load(load));
  }

 private:
  Server& server_;
  Outcome& outcome_;
  std::string file_;
  Resident matrix_;
  Products products_;
};

/// Once the service has noticed that the clients have left.
Totals settled(const Server& server) {
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return server.totals();
}

}  // namespace

void run_leaks(const Setup& setup, Outcome& outcome) {
  Server server(setup.library, setup.ranks_or(2));
  Work work(setup, server, outcome);
  const int loads = setup.by_size(1'000, 20);
  const std::int64_t requests = setup.by_size(1'000'000, 10'000), connections = setup.by_size(100'000, 1'000);
  work.load_and_unload(loads / 10);
  work.request(requests / 10, false);
  work.request(connections / 10, true);
  const Totals before = settled(server);
  work.load_and_unload(loads);
  const Totals loaded = settled(server);
  work.request(requests, false);
  const Totals requested = settled(server);
  work.request(connections, true);
  const Totals after = settled(server);
  const auto growth = [](std::int64_t now_there, std::int64_t had) { return static_cast<double>(now_there - had); };
  outcome.at_most("memory after all", growth(after.bytes, before.bytes), kMostBytes, Unit::bytes);
  outcome.report("memory after loads and unloads", growth(loaded.bytes, before.bytes), Unit::bytes);
  outcome.report("memory after requests", growth(requested.bytes, loaded.bytes), Unit::bytes);
  outcome.report("memory after connections", growth(after.bytes, requested.bytes), Unit::bytes);
  outcome.at_most("descriptors", growth(after.descriptors, before.descriptors), 0, Unit::count);
  outcome.at_most("shared memory in /dev/shm", growth(after.shm_bytes, before.shm_bytes), kMostBytes, Unit::bytes);
  outcome.report("loads and unloads", loads, Unit::count);
  outcome.report("requests", static_cast<double>(requests), Unit::count);
  outcome.report("connections", static_cast<double>(connections), Unit::count);
}

}  // namespace shardmat::tools::service_bench
