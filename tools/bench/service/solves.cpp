// Solves a second of 1 to 8 clients of one matrix, by a service that merges them and by one that does not. What a solve
// takes alone. How long products of another client wait while the ranks solve: slices of a solve and products take turns.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tools/bench/service/checks.h"
#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr int kMostSolvers = 8, kProductConnections = 16;
constexpr double kSolveResidual = 2e-8, kSolvePatience = 600, kSolveNoise = 0.95;
constexpr const char* kSolve = "/v1/matrices/m/solve?method=cg&preconditioner=jacobi&rtol=1e-8&wait=600";

class SolveSide {
 public:
  SolveSide(const Setup& setup, const std::string& spec, const Truth& truth, bool merging)
      : server_(setup.library, setup.ranks_or(1),
                merging ? std::vector<std::string>{} : std::vector<std::string>{"--no-merge"}),
        matrix_(load_solvable(server_, setup.library.add(spec))),
        products_(make_products(server_, matrix_, kMostSolvers, kMostSolvers)),
        curve_{spec, false, merging, {}, true} {
    for (const Request& product : products_.requests)
      solves_.push_back(solve_request(kSolve, product.body, truth, kSolveResidual));
  }

  /// Median seconds of one solve after the other. The first one sets up the solver, and does not count.
  double seconds_alone(int runs, Outcome& outcome) {
    LoadOptions load{server_.socket(), solves_};
    load.most = runs + 1, load.patience = kSolvePatience;
    LoadResult result = run_load(load);
    outcome.count(result);
    if (!result.samples.empty()) result.samples.erase(result.samples.begin());
    return median(result.latencies());
  }

  /// Solves a second.
  double measure(int clients, double seconds, Outcome& outcome) {
    LoadOptions load{server_.socket(), solves_};
    load.connections = clients, load.seconds = seconds, load.patience = kSolvePatience;
    const LoadResult result = run_load(load);
    outcome.count(result);
    // Of all that began in this time: few solves may end in it.
    const double last = result.samples.empty() ? now() : result.samples.back().done;
    const double rate = static_cast<double>(result.latencies().size()) / std::max(1e-9, last - result.began);
    std::vector<double> columns;
    for (const Sample& sample : result.samples) columns.push_back(static_cast<double>(sample.columns));
    curve_.points.push_back(
        {clients, rate, median(result.latencies()), percentile(result.latencies(), 0.99), median(columns)});
    return rate;
  }

  /// Seconds of products that come at random times; with a client that solves meanwhile, or without.
  std::vector<double> seconds_of_products(double rate, double seconds, bool solving, Outcome& outcome) {
    LoadOptions solves{server_.socket(), solves_};
    solves.patience = kSolvePatience;
    if (!solving) solves.most = 0;
    BackgroundLoad background(solves);
    LoadOptions load{server_.socket(), products_.requests};
    load.connections = kProductConnections, load.rate = rate, load.seconds = seconds;
    const LoadResult result = run_load(load);
    outcome.count(background.finish());
    outcome.count(result);
    return result.latencies();
  }

  const Curve& curve() const { return curve_; }

 private:
  Server server_;
  Resident matrix_;
  Products products_;
  std::vector<Request> solves_;
  Curve curve_;
};

void report_solve_waits(SolveSide& side, const Setup& setup, Outcome& outcome) {
  const double rate = setup.by_size(20.0, 100.0), seconds = setup.by_size(30.0, 0.5);
  const double alone = median(side.seconds_of_products(rate, seconds, false, outcome));
  const std::vector<double> beside = side.seconds_of_products(rate, seconds, true, outcome);
  outcome.report("a product alone, median", alone, Unit::seconds);
  outcome.report("a product while another client solves, median", median(beside), Unit::seconds);
  outcome.report("a product while another client solves, 99 %", percentile(beside, 0.99), Unit::seconds);
  outcome.report("the median of these over two products alone", median(beside) / std::max(1e-9, 2 * alone), Unit::ratio);
}

}  // namespace

void run_solves(const Setup& setup, Outcome& outcome) {
  const std::string spec = setup.matrix_or("elasticity:n=24,clamp=0.05", "elasticity:n=8,clamp=0.05");
  const Truth truth(spec);
  SolveSide merged(setup, spec, truth, true), alone(setup, spec, truth, false);
  outcome.report("one solve alone, median", alone.seconds_alone(setup.by_size(10, 2), outcome), Unit::seconds);
  merged.seconds_alone(1, outcome);  // sets up
  const double seconds = setup.by_size(20.0, 1.0);
  double rate = 0, rate_alone = 0;
  for (const int clients : setup.small ? std::vector{1, kMostSolvers} : std::vector{1, 2, 4, kMostSolvers}) {
    rate = merged.measure(clients, seconds, outcome);
    rate_alone = alone.measure(clients, seconds, outcome);
  }
  outcome.report("8 clients, merged", rate, Unit::per_second);
  outcome.report("8 clients, not merged", rate_alone, Unit::per_second);
  outcome.at_least("8 clients, merged over not merged", rate / std::max(1e-9, rate_alone), kSolveNoise, Unit::ratio);
  outcome.report("8 clients: solves merged to one, median", merged.curve().points.back().median_columns, Unit::count);
  report_solve_waits(merged, setup, outcome);
  outcome.add(merged.curve());
  outcome.add(alone.curve());
}

}  // namespace shardmat::tools::service_bench
