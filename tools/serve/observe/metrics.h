// What the service counts: requests, products, ranks, memory.
//
// Labels have few values: names of matrices are those that the service knows, and paths, codes and reasons are its own
// words.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tools/serve/http/http_message.h"
#include "tools/serve/observe/prometheus.h"
#include "tools/serve/ranks/dispatcher.h"
#include "tools/serve/ranks/service.h"

namespace shardmat::serve {

/// Requests for products of one matrix. Seconds are sums.
struct MatrixTotals {
  std::uint64_t requests = 0, columns = 0, failed = 0, products = 0;
  double seconds = 0, failed_seconds = 0, queue = 0, copy_in = 0, product = 0, copy_out = 0;
  double bytes = 0;  ///< that the products moved at least, on all ranks
  double last = 0;   ///< when the last request came, in seconds since 1970
};

class Metrics {
 public:
  explicit Metrics(const Service& service) : service_(service) {}

  void add(const RequestRecord& request);
  void add(const FinishedProduct& product);
  void add(const ServiceEvent& event);

  /// Zeros for a matrix that nobody has multiplied.
  const MatrixTotals& totals(const std::string& matrix) const;
  /// All figures in the text format of Prometheus. Those of other tokens are left out, except for the owner of the service.
  std::string text(const Rights& rights) const;
  std::function<void(PrometheusText&)> more;         ///< writes figures of other parts (watched.h), if it is set
  std::function<std::uint64_t()> lost_access_lines;  ///< of the access log; empty if there is none

 private:
  struct PerMatrix {
    Histogram queue_seconds, batch_columns, product_seconds;
    MatrixTotals totals;
    PerMatrix();
  };
  std::string label_of(const std::string& matrix);
  PerMatrix& per_matrix(const std::string& label) { return matrices_[label]; }
  void write_requests(PrometheusText& text) const;
  void write_products(PrometheusText& text) const;
  void write_tokens(PrometheusText& text, const Rights& rights) const;
  void write_ranks(PrometheusText& text) const;
  void write_memory(PrometheusText& text) const;
  void write_devices(PrometheusText& text) const;
  void write_ended_jobs(PrometheusText& text) const;
  void write_logs(PrometheusText& text) const;

  const Service& service_;
  std::map<std::tuple<std::string, std::string, int>, std::uint64_t> requests_;  ///< by matrix, op and status
  std::map<std::string, Histogram> request_seconds_;                             ///< by op
  // Reasons and states that alerts look for are there from the beginning, so that the first case is seen as a rise.
  std::map<std::string, std::uint64_t> rejected_{
      {"arena_full", 0}, {"busy", 0}, {"too_many_connections", 0}, {"too_many_jobs", 0}};          ///< by code
  std::map<std::string, std::uint64_t> ended_jobs_{{"cancelled", 0}, {"done", 0}, {"failed", 0}};  ///< by state
  std::map<std::string, double> client_seconds_;                                                   ///< by name of the client
  std::map<std::string, PerMatrix> matrices_;                                                      ///< by name
  std::uint64_t copied_in_ = 0, copied_out_ = 0, losses_ = 0;
  std::uint64_t batches_ = 0, batch_products_ = 0;  ///< requests for batches that were multiplied; products of them
  std::vector<std::string> hosts_;                  ///< by rank, when all were there the last time
};

}  // namespace shardmat::serve
