// A temporary folder that goes away with the object, and also if this process is killed.
//
// Threads: one at a time.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace shardmat::tools::service_bench {

class Scratch {
 public:
  /// Throws Error(resources) if the folder cannot be made.
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  pid_t cleaner_ = 0;  ///< removes the folder when the other end of the pipe is closed
  int pipe_ = -1;
};

}  // namespace shardmat::tools::service_bench
