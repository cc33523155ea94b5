#include "tools/serve/observe/watched.h"

#include <array>

#include "tools/cli/version.h"

namespace shardmat::serve {
namespace {

/// A sample for each state, also for those that nothing is in. `last`: of the states.
template <class State, State last>
class StateCounts {
 public:
  void add(State state) { ++counts_[static_cast<std::size_t>(state)]; }
  void write(PrometheusText& text) const {
    for (std::size_t i = 0; i < counts_.size(); ++i) text.sample(counts_[i], {{"state", state_name(static_cast<State>(i))}});
  }

 private:
  std::array<double, static_cast<std::size_t>(last) + 1> counts_{};
};

}  // namespace

void write_matrices(PrometheusText& text, const Matrices& matrices) {
  StateCounts<MatrixState, MatrixState::values_lost> counts;
  for (const auto& [name, matrix] : matrices) {
    counts.add(matrix->state);
    if (matrix->next) counts.add(matrix->next->state);
  }
  text.family("shardmat_matrices", "gauge", "Matrices by state. One that is to take the place of another counts, too.");
  counts.write(text);
}

void write_jobs(PrometheusText& text, const Jobs& jobs) {
  StateCounts<JobState, JobState::cancelled> counts;
  for (const auto& [number, job] : jobs.all()) counts.add(job->state());
  text.family("shardmat_jobs", "gauge", "Jobs by state. Of those that have ended: the ones that are kept.");
  counts.write(text);
}

void write_connections(PrometheusText& text, const HttpServer::Connections& connections) {
  text.family("shardmat_open_connections", "gauge",
              "Open connections of the Unix socket, of addresses, and above the limits for requests about health.");
  text.sample(static_cast<double>(connections.on_unix_socket), {{"door", "unix"}});
  text.sample(static_cast<double>(connections.on_addresses), {{"door", "address"}});
  text.sample(static_cast<double>(connections.for_health), {{"door", "health"}});
  text.family("shardmat_max_connections", "gauge", "Most connections of the Unix socket and of addresses together.");
  text.sample(static_cast<double>(connections.most));
}

void write_certificate(PrometheusText& text, double expires) {
  text.family("shardmat_certificate_expiry_timestamp_seconds", "gauge",
              "When the first certificate of the chain ends, in seconds since 1970.");
  text.sample(expires);
}

void write_build(PrometheusText& text, const std::string& backend) {
  text.family("shardmat_build_info", "gauge", "1, with what was started: version, commit, and backend as asked for.");
  text.sample(1, {{"version", tools::version_number()}, {"commit", tools::commit()}, {"backend", backend}});
}

}  // namespace shardmat::serve
