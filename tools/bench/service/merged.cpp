// Products a second of 1 to 32 clients of one matrix, by a service that merges them and by one that does not. Vectors stay
// in the service, or are sent: then bodies take their share of the time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/base/error.h"
#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr std::size_t kMostClients = 32;
constexpr double kGainThatCounts = 2.5, kLeastGain = 2, kNoise = 0.95, kLeastShare = 0.85;

class Side {
 public:
  Side(const Setup& setup, const std::string& name, bool merging)
      : server_(setup.library, setup.ranks_or(1),
                merging ? std::vector<std::string>{} : std::vector<std::string>{"--no-merge"}),
        matrix_(server_.load("m", setup.library.add(name))),
        sent_(make_products(server_, matrix_, kMostClients, 1)),
        resident_(make_resident_products(server_, matrix_, sent_)),
        curves_{Curve{name, false, merging, {}}, Curve{name, true, merging, {}}} {}

  const Resident& matrix() const { return matrix_; }

  /// Products a second.
  double measure(bool resident, int clients, double seconds, Outcome& outcome) {
    LoadOptions load{server_.socket(), resident ? resident_.requests : sent_.requests};
    load.connections = clients;
    load.seconds = seconds;
    const LoadResult result = run_load(load);
    outcome.count(result);
    const double rate = result.rate(0.2 * seconds, seconds);
    std::vector<double> columns;
    for (const Sample& sample : result.samples) columns.push_back(static_cast<double>(sample.columns));
    curves_[resident].points.push_back(
        {clients, rate, median(result.latencies()), percentile(result.latencies(), 0.99), median(columns)});
    return rate;
  }

  double measure_block(double seconds, Outcome& outcome) {
    const std::string x = server_.make_vector(matrix_, false, std::int64_t{kMostClients}),
                      y = server_.make_vector(matrix_, true, std::int64_t{kMostClients});
    Connection connection(server_.socket());
    outcome.count(200, connection.ask(numbers_request("PUT", "/v1/vectors/" + x, sent_.x)).status == 204);
    const Request request = resident_request(matrix_.name, x, y);
    LoadOptions load{server_.socket(), std::span(&request, 1)};
    load.seconds = seconds;
    const LoadResult result = run_load(load);
    outcome.count(result);
    const Reply reply = connection.ask(make_request("GET", "/v1/vectors/" + y));
    const HostVector<std::byte>& first = sent_.y.front();
    outcome.count(reply.status, reply.body.size() == kMostClients * matrix_.y_bytes() &&
                                    std::equal(first.begin(), first.end(), reply.body.begin()));
    return static_cast<double>(kMostClients) * result.rate(0.2 * seconds, seconds);
  }

  /// What the products of vectors that stay left there, and the curve.
  void finish(bool resident, Outcome& outcome) {
    if (resident) outcome.count(200, are_right(server_, resident_, sent_));
    outcome.add(curves_[resident]);
  }

 private:
  Server server_;
  Resident matrix_;
  Products sent_;
  ResidentProducts resident_;
  std::array<Curve, 2> curves_;  ///< vectors sent, resident
};

/// Products a second of one client whose x and y have as many columns as there are clients, and lie as products want them.
void report_block(const std::string& label, Side& side, double seconds, Outcome& outcome) {
  try {
    outcome.report(label + "one client with 32 columns in one vector", side.measure_block(seconds, outcome),
                   Unit::per_second);
  } catch (const Error& why) {  // such a product would sum in another order
    outcome.note(label + why.what());
  }
}

void run_with(const std::string& name, const Setup& setup, Outcome& outcome) {
  Side merged(setup, name, true), alone(setup, name, false);
  const Resident& matrix = merged.matrix();
  const double possible = matrix.most_per_second(), possible_gain = possible * matrix.seconds_of_one();
  const double seconds = setup.by_size(2.0, 0.3);
  for (const bool resident : {true, false}) {
    double worst = std::numeric_limits<double>::infinity(), gain = 0, rate = 0;
    for (const int clients : setup.small ? std::vector{1, 32} : std::vector{1, 2, 4, 8, 16, 32}) {
      rate = merged.measure(resident, clients, seconds, outcome);
      gain = rate / std::max(1e-9, alone.measure(resident, clients, seconds, outcome));
      worst = std::min(worst, gain);
    }
    merged.finish(resident, outcome);
    alone.finish(resident, outcome);
    const std::string label = name + (resident ? ": " : ", vectors sent: ");
    if (resident && possible_gain >= kGainThatCounts)
      outcome.at_least(label + "32 clients, merged over not merged", gain, kLeastGain, Unit::ratio);
    else outcome.report(label + "32 clients, merged over not merged", gain, Unit::ratio);
    if (resident) {
      outcome.at_least(label + "merged over not merged, worst of all", worst, kNoise, Unit::ratio);
      outcome.at_least(label + "share of the products alone", rate / possible, kLeastShare, Unit::ratio);
      outcome.report(label + "gain of wide products alone", possible_gain, Unit::ratio);
    }
    outcome.report(label + "32 clients, merged", rate, Unit::per_second);
  }
  report_block(name + ": ", merged, seconds, outcome);
}

}  // namespace

void run_merged(const Setup& setup, Outcome& outcome) {
  if (!setup.matrix.empty() || setup.small) return run_with(setup.matrix_or("", "elasticity:n=8"), setup, outcome);
  if (setup.library.on_gpus()) return run_with("poisson27:n=128", setup, outcome);
  run_with("elasticity:n=40", setup, outcome);
  run_with("poisson27:n=96", setup, outcome);
}

}  // namespace shardmat::tools::service_bench
