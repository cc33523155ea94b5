// The most anonymous memory (RssAnon: pages of mapped files not counted) this process had while in scope.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace shardmat::tools {

/// Samples every few milliseconds on a thread of its own.
class PeakMemory {
 public:
  PeakMemory();
  ~PeakMemory();
  PeakMemory(const PeakMemory&) = delete;
  PeakMemory& operator=(const PeakMemory&) = delete;

  /// Bytes, so far.
  std::int64_t bytes() const { return peak_.load(); }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> peak_{0};
  std::thread sampler_;
};

}  // namespace shardmat::tools
