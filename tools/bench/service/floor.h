// What moving bytes between two processes costs without any service: the floor of all requests.
//
// Threads: one at a time.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "kernels/base/host_vector.h"

namespace shardmat::tools::service_bench {

/// A process that reads messages from a Unix socket into one mapping and sends the same number of bytes back from it.
class Echo {
 public:
  /// Pages for messages of so many bytes are touched before. Throws Error(resources) if there is no process or memory.
  explicit Echo(std::size_t most_bytes);
  ~Echo();
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  /// Seconds of one message there and back.
  double seconds(std::size_t bytes);

 private:
  int socket_ = -1;
  pid_t process_ = 0;
  HostVector<std::byte> buffer_;
};

/// Median seconds from a send to a process that waits in recv() until it runs.
double wake_up_seconds(int runs);

}  // namespace shardmat::tools::service_bench
