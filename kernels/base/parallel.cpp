#include "kernels/base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace shardmat {
namespace {

/// Runs the tasks of a parallel region, and keeps the first exception.
class Region {
 public:
  template <class F>
  void run(F&& f) noexcept {
    const ThreadCount no_nested_region(1);
    try {
      f();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

/// Tasks that no thread has taken. Each thread has a share of consecutive ones.
class Shares {
 public:
  Shares(std::int64_t tasks, int threads) : shares_(static_cast<std::size_t>(threads)) {
    for (std::int64_t t = 0; t < threads; ++t) {
      Share& share = shares_[static_cast<std::size_t>(t)];
      share.next = tasks * t / threads;
      share.end = tasks * (t + 1) / threads;
    }
  }

  /// A task of this thread's share, or of another share when this one is empty; -1: all tasks are taken.
  std::int64_t take(int thread) {
    for (std::size_t k = 0; k < shares_.size(); ++k) {
      Share& share = shares_[(static_cast<std::size_t>(thread) + k) % shares_.size()];
      if (share.next.load(std::memory_order_relaxed) >= share.end) continue;
      if (const std::int64_t task = share.next.fetch_add(1, std::memory_order_relaxed); task < share.end) return task;
    }
    return -1;
  }

 private:
  struct alignas(64) Share {  // a cache line of its own
    std::atomic<std::int64_t> next = 0;
    std::int64_t end = 0;
  };
  std::vector<Share> shares_;
};

constexpr std::int64_t kMostShares = std::int64_t{1} << 20;  // more than threads of any machine

thread_local int threads_in_scope = 0;  // 0: no ThreadCount

}  // namespace

int thread_count() { return threads_in_scope > 0 ? threads_in_scope : omp_get_max_threads(); }

int threads_for(std::int64_t work) {
  const int threads = thread_count();
  return work / kWorkOfAThread >= std::max(2, threads / 8) ? threads : 1;
}

std::int64_t grain_of(std::int64_t count, std::int64_t work) {
  const double of_one = static_cast<double>(work) / static_cast<double>(std::max<std::int64_t>(count, 1));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(kWorkOfAThread) / std::max(of_one, 1.0)));
}

ThreadCount::ThreadCount(int threads) : previous_(std::exchange(threads_in_scope, std::max(1, threads))) {}
ThreadCount::~ThreadCount() { threads_in_scope = previous_; }

int threads_of_environment(int otherwise) {
  return std::getenv("OMP_NUM_THREADS") != nullptr ? omp_get_max_threads() : std::max(1, otherwise);
}

bool threads_wait_asleep() {
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  return policy != nullptr && (policy[0] == 'p' || policy[0] == 'P');
}

void parallel_ranges(std::int64_t count, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (count <= 0) return;
  const std::int64_t most = std::min(count / std::max<std::int64_t>(1, grain), kMostShares);
  const int threads = threads_for(most * kWorkOfAThread);
  if (threads == 1) return body(0, count);
  const int ranges = static_cast<int>(std::min<std::int64_t>(threads, most));
  Region region;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < ranges; ++t)
    region.run([&] {
      body(count / ranges * t + std::min<std::int64_t>(t, count % ranges),
           count / ranges * (t + 1) + std::min<std::int64_t>(t + 1, count % ranges));
    });
  region.rethrow();
}

void parallel_tasks(std::int64_t tasks, const std::function<void(std::int64_t)>& body) {
  const int threads = thread_count();
  if (threads == 1 || tasks <= 1) {
    for (std::int64_t i = 0; i < tasks; ++i) body(i);
    return;
  }
  Region region;
  Shares shares(tasks, threads);
#pragma omp parallel num_threads(threads)
  for (std::int64_t i; (i = shares.take(omp_get_thread_num())) >= 0;) region.run([&] { body(i); });
  region.rethrow();
}

}  // namespace shardmat
