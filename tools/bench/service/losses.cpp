// Ranks that are killed and stopped while clients wait for products and solves.
#include <csignal>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <thread>

#include "kernels/base/error.h"
#include "tools/bench/service/checks.h"
#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr int kClients = 8;
constexpr double kLossResidual = 2e-8, kAnswerSeconds = 0.1, kReadySlack = 1, kNoticeSlack = 0.5, kTimeout = 2,
                 kPatience = 60;

void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

LoadOptions closed_load(const Server& server, std::span<const Request> requests) {
  LoadOptions options{server.socket(), requests};
  options.connections = kClients;
  return options;
}

/// Seconds from `when` to the replies of requests that were under way then.
std::vector<double> answers_since(const LoadResult& load, double when) {
  std::vector<double> seconds;
  for (const Sample& sample : load.samples)
    if (sample.sent < when && sample.done > when && sample.status != 200) seconds.push_back(sample.done - when);
  return seconds;
}

/// Solves with the x of the products as b. A lost rank is forgiven once, so that many of them succeed.
std::vector<Request> solves_of(const Products& products, const Truth& truth) {
  std::vector<Request> solves;
  for (const Request& product : products.requests)
    solves.push_back(solve_request("/v1/matrices/m/solve?method=cg&preconditioner=jacobi&rtol=1e-8&wait=60", product.body,
                                   truth, kLossResidual));
  return solves;
}

pid_t any_rank(const Server& server) {
  const std::vector<pid_t> ranks = server.rank_processes();
  if (ranks.empty()) throw Error(ErrorKind::internal, "the service has no ranks to lose");
  return ranks.back();
}

}  // namespace

void run_kill(const Setup& setup, Outcome& outcome) {
  const std::string spec = setup.matrix_or("elasticity:n=40,clamp=0.05", "elasticity:n=8,clamp=0.05");
  const Truth truth(spec);
  Server server(setup.library, setup.ranks_or(2), {"--restarts", "1000", "--restart-delay", "0"});
  const double load_began = now();
  const Resident matrix = load_solvable(server, setup.library.add(spec));
  const double load_seconds = now() - load_began;
  const Products products = make_products(server, matrix, kClients, kClients);
  const std::vector<Request> solves = solves_of(products, truth);
  const int kills = setup.by_size(50, 2);
  std::vector<double> when, back;
  BackgroundLoad clients(closed_load(server, products.requests)), solvers(closed_load(server, solves));
  for (int kill_number = 0; kill_number < kills; ++kill_number) {
    nap(setup.by_size(0.2, 0.1));
    const pid_t rank = any_rank(server);
    when.push_back(now());
    kill(rank, SIGKILL);
    while (server.ready() && now() < when.back() + kPatience) nap(0.001);
    server.wait_until_ready(kPatience);
    back.push_back(now() - when.back());
  }
  nap(0.1);
  const LoadResult& load = clients.finish();
  outcome.count(load);
  outcome.count(solvers.finish());
  std::vector<double> answers;
  for (const double time : when) {
    const std::vector<double> some = answers_since(load, time);
    answers.insert(answers.end(), some.begin(), some.end());
  }
  outcome.report("ranks killed", kills, Unit::count);
  outcome.report("clients that waited for a product then", static_cast<double>(answers.size()), Unit::count);
  outcome.at_most("99 % of their answers after the kill", percentile(answers, 0.99), kAnswerSeconds, Unit::seconds);
  outcome.at_most("ready again after the kill, median", median(back), server.start_seconds() + load_seconds + kReadySlack,
                  Unit::seconds);
  outcome.report("ready again after the kill, longest", percentile(back, 1), Unit::seconds);
  outcome.report("first start", server.start_seconds(), Unit::seconds);
  outcome.report("first load", load_seconds, Unit::seconds);
}

void run_stop(const Setup& setup, Outcome& outcome) {
  const std::string spec = setup.matrix_or("elasticity:n=40,clamp=0.05", "elasticity:n=8,clamp=0.05");
  const Truth truth(spec);
  Server server(setup.library, setup.ranks_or(2), {"--timeout", fmt::format("{:g}", kTimeout)});
  const Resident matrix = load_solvable(server, setup.library.add(spec));
  const Products products = make_products(server, matrix, kClients, kClients);
  const std::vector<Request> solves = solves_of(products, truth);
  // A product may take 20 times as long as expected; its 2 s at least are the timeout's.
  const double deadline = std::max(kTimeout, 20 * matrix.widths.back().seconds + kTimeout - 2);
  std::vector<double> noticed;
  for (int stop_number = 0; stop_number < setup.by_size(3, 1); ++stop_number) {
    BackgroundLoad clients(closed_load(server, products.requests)), solvers(closed_load(server, solves));
    nap(0.2);
    const pid_t rank = any_rank(server);
    const double when = now();
    kill(rank, SIGSTOP);
    nap(deadline + kNoticeSlack + 1);
    const LoadResult& load = clients.finish();
    outcome.count(load);
    outcome.count(solvers.finish());
    const std::vector<double> answers = answers_since(load, when);
    noticed.push_back(answers.empty() ? kPatience : percentile(answers, 1));
    server.wait_until_ready(kPatience);
  }
  outcome.at_most("stopped rank: last answer to those who waited", percentile(noticed, 1), deadline + kNoticeSlack,
                  Unit::seconds);
  outcome.report("deadline", deadline, Unit::seconds);
}

}  // namespace shardmat::tools::service_bench
