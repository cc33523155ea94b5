// Host threads (OpenMP), with exceptions carried out of the parallel region.
#pragma once

#include <cstdint>
#include <functional>

namespace shardmat {

/// Threads that parallel_ranges uses: OMP_NUM_THREADS, or what set_thread_count chose for this rank.
int thread_count();

/// Sets the threads of this process, e.g. cores / ranks on this host; ignored if OMP_NUM_THREADS is set.
void set_thread_count(int threads);
/// Sets the threads of this process to what its caller asked for, whatever OMP_NUM_THREADS says. At least 1.
void require_thread_count(int threads);

/// CPU cores this process may use (its affinity mask and its cgroup's quota).
int usable_cores();

/// Splits [0, count) into one contiguous range per thread (at least `grain` elements each, so small work stays
/// on the caller) and calls body(begin, end) on each. The first exception thrown is rethrown on the caller.
void parallel_ranges(std::int64_t count, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& body);

/// Calls body(i) for every task i in [0, tasks), handed out dynamically one at a time.
void parallel_tasks(std::int64_t tasks, const std::function<void(std::int64_t)>& body);

}  // namespace shardmat
