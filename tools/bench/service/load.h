// Many requests at once from one thread. Arrivals are either open, at random times that do not depend on the replies, or
// closed: each connection sends its next request when it has the reply. Latencies of open arrivals count from the time at
// which the request should have been sent, so a slow server cannot hide behind requests that were never sent.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tools/bench/service/client.h"

namespace shardmat::tools::service_bench {

struct LoadOptions {
  std::string socket = {};
  std::span<const Request> requests = {};  ///< taken in turn, or by `pick`
  std::function<std::size_t(std::int64_t)> pick = {};
  int connections = 1;
  double rate = 0;  ///< arrivals a second, a Poisson process; 0: closed
  std::uint64_t seed = 1;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  ///< requests
  double seconds = std::numeric_limits<double>::infinity();      ///< after which none is sent
  double patience = 30;                                          ///< seconds for the last replies
  double pause = 0.005;                           ///< closed: a connection rests so long after a request that failed
  bool fresh_connections = false;                 ///< every request has a connection of its own
  std::function<void(Connection&)> prepare = {};  ///< called for each connection before the load begins
  const std::atomic<bool>* stop = nullptr;
};

struct Sample {
  double intended = 0, sent = 0, done = 0;
  int status = 0;  ///< 0: the connection ended without a reply
  std::int64_t columns = 0;

  double latency() const { return done - intended; }
  bool succeeded() const { return status / 100 == 2; }
};

struct LoadResult {
  std::vector<Sample> samples;  ///< in the order of their replies
  std::int64_t wrong = 0;       ///< replies that are not what was expected
  std::int64_t missing = 0;     ///< requests that were never answered
  double began = 0;

  std::map<int, std::int64_t> statuses() const;
  /// Of the requests that succeeded, or had one status.
  std::vector<double> latencies() const;
  std::vector<double> latencies(int status) const;
  /// Requests that succeeded a second, between two times after the beginning.
  double rate(double from, double to) const;
};

/// REQUIRES: options.requests is not empty; most or seconds is finite, or `stop` is set some time.
LoadResult run_load(const LoadOptions& options);

/// A load on a thread of its own, until finish() or the end of the object.
class BackgroundLoad {
 public:
  /// `options.stop` is set here.
  explicit BackgroundLoad(LoadOptions options);
  ~BackgroundLoad();
  BackgroundLoad(const BackgroundLoad&) = delete;
  BackgroundLoad& operator=(const BackgroundLoad&) = delete;

  const LoadResult& finish();

 private:
  std::atomic<bool> stop_{false};
  LoadOptions options_;
  LoadResult result_;
  std::thread thread_;
};

/// The value below which a share of the values lies; 0 for no values.
double percentile(std::vector<double> values, double share);
inline double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

}  // namespace shardmat::tools::service_bench
