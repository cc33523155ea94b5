// The service ends while clients wait for products and solves: whoever was let in is answered.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <span>
#include <thread>
#include <vector>

#include "kernels/base/error.h"
#include "tools/bench/service/checks.h"
#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr int kClients = 4;  // of each kind
constexpr double kResidual = 2e-8, kEnds = 10;
/// A request that comes while the service ends may find its connection closed.
constexpr double kOnItsWay = 0.05;

/// One request after another, until the service is gone.
class Clients {
 public:
  Clients(Server& server, const Products& products, const Truth& truth)
      : server_(server), products_(products), truth_(truth) {
    for (int i = 0; i < 2 * kClients; ++i) threads_.emplace_back([this, i] { run(i); });
  }
  ~Clients() { join(); }

  void join() {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }
  /// The service is told to end now.
  void ends() { ends_ = now(); }
  Tally& tally() { return tally_; }
  int answered_after() const { return answered_after_; }

 private:
  void run(int number) {
    const bool solves = number % 2 == 0;
    const std::string kind = solves ? "solves" : "products";
    const Request& product = products_.requests[static_cast<std::size_t>(number)];
    const Request solve =
        numbers_request("POST", "/v1/matrices/m/solve?method=cg&preconditioner=none&rtol=1e-8&wait=60", product.body);
    double sent = 0;
    try {
      Connection connection(server_.socket());
      for (;;) {
        sent = now();
        const Reply reply = connection.ask(solves ? solve : product);
        if (reply.status == 503) return tally_.refused(kind);
        if (reply.status != 200) return tally_.wrong(kind, fmt::format("{} {}", reply.status, reply.text()));
        const bool good = solves ? truth_.residual(product.body, reply.body) <= kResidual : is_right(product, reply);
        good ? tally_.right(kind) : tally_.wrong(kind, "another answer");
        if (sent < ends_ && now() > ends_) ++answered_after_;
        if (reply.closes) return;
      }
    } catch (const Error& error) {  // a connection that ends without an answer, or nobody listens
      if (sent < ends_ - kOnItsWay) tally_.wrong(kind, error.what());
    }
  }

  Server& server_;
  const Products& products_;
  const Truth& truth_;
  Tally tally_;
  std::atomic<double> ends_{std::numeric_limits<double>::infinity()};
  std::atomic<int> answered_after_{0};
  std::vector<std::thread> threads_;
};

}  // namespace

void run_drain(const Setup& setup, Outcome& outcome) {
  const std::string spec = setup.matrix_or("elasticity:n=16,clamp=0.05", "elasticity:n=8,clamp=0.05");
  const Truth truth(spec);
  std::vector<double> took;
  int answered = 0;
  Tally all;
  for (int i = 0; i < setup.by_size(10, 2); ++i) {
    Server server(setup.library, setup.ranks_or(2));
    const Resident matrix = load_solvable(server, setup.library.add(spec));
    const Products products = make_products(server, matrix, 2 * kClients, 2 * kClients);
    Clients clients(server, products, truth);
    std::this_thread::sleep_for(std::chrono::milliseconds(300 + 37 * i));
    const double began = now();
    clients.ends();
    const std::string how = server.stop();
    took.push_back(now() - began);
    clients.join();
    how == "exit code 0" ? clients.tally().right("ends") : clients.tally().wrong("ends", "it ended with " + how);
    answered += clients.answered_after();
    all.take(clients.tally());
  }
  outcome.report("clients that were answered after the service was told to end", answered, Unit::count);
  outcome.at_most("it ended after, longest", percentile(took, 1), kEnds, Unit::seconds);
  all.report(outcome);
}

}  // namespace shardmat::tools::service_bench
