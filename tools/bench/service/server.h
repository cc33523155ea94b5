// The service under test: started in a temporary folder, watched, and ended with the object.
//
// Threads: the thread that makes it must live as long; ask() and the other calls come from one thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bench/service/client.h"
#include "tools/bench/service/processes.h"
#include "tools/serve/ranks/batching.h"
#include "tools/serve/ranks/child_process.h"

namespace shardmat::tools::service_bench {

class MatrixFolder;

/// Runs a command and waits for its end. Throws Error(resources) with the last line that it printed if it fails.
void run_to_end(const std::vector<std::string>& command, const std::filesystem::path& log);

/// What all processes of the service take.
struct Totals {
  double cpu_seconds = 0;
  std::int64_t bytes = 0;  ///< anonymous memory of all, and the vectors of requests once
  std::int64_t descriptors = 0, shm_bytes = 0;
};

/// A matrix as the service describes it (GET /v1/matrices/NAME).
struct Resident {
  explicit Resident(std::string_view description);

  std::string name, source, type, exchange;
  std::int64_t rows = 0, cols = 0;
  std::vector<service::WidthTime> widths;

  std::size_t x_bytes() const;
  std::size_t y_bytes() const;
  serve::WidthTable table() const { return serve::WidthTable(widths); }
  double seconds_of_one() const { return widths.front().seconds; }
  /// The most products a second, if they need not be moved.
  double most_per_second() const;
};

class Server {
 public:
  /// Starts `shardmat serve` for the matrices of `library` and waits until it is ready. Throws Error(resources) if it is
  /// not ready in time, with the last line of its log. Its state is kept beside the library.
  Server(const MatrixFolder& library, int ranks, const std::vector<std::string>& more = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::string& socket() const { return socket_; }
  int ranks() const { return ranks_; }
  /// Seconds from its start until it was ready.
  double start_seconds() const { return start_seconds_; }

  /// Loads a file of the library. Throws Error(resources) if the service cannot.
  Resident load(const std::string& name, const std::string& source, const std::string& type = "f64");
  void unload(const std::string& name);
  /// Makes a vector that stays, distributed as x or y of the matrix, and returns its id. Throws Error(resources) if the
  /// service cannot.
  std::string make_vector(const Resident& matrix, bool as_y, std::int64_t columns = 1);

  bool ready();
  /// Throws Error(rank_lost) if the service is not ready within so many seconds.
  void wait_until_ready(double seconds);
  /// Process ids of the ranks, in no order.
  std::vector<pid_t> rank_processes() const;
  Totals totals() const;
  /// Processor time of the process that clients speak with.
  double front_cpu_seconds() const { return usage_of(process_).cpu_seconds; }

  /// Ends the service as its users do, and returns how it ended: "exit code 0".
  std::string stop();

 private:
  std::string last_line() const;

  std::filesystem::path state_;
  std::string socket_;
  int ranks_;
  pid_t process_ = 0;
  serve::ProcessHandle handle_;
  double start_seconds_ = 0;
};

}  // namespace shardmat::tools::service_bench
