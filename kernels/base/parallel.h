// Host threads (OpenMP). Exceptions in a parallel region are rethrown on the caller.
//
// Threads: any thread may call this, several at a time. Each calling thread has its own thread_count(). The settings of
// OpenMP are read and never changed: they belong to the program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace shardmat {

/// Threads that host work of the calling thread takes. Inside a parallel region of this file: 1, so that regions never nest.
/// Else as the innermost ThreadCount in scope says. Without one, as OpenMP says (OMP_NUM_THREADS, else all cores).
int thread_count();

/// Sets thread_count() of the calling thread while in scope, at least 1, and restores the old one. A scope at the public
/// entries rather than a parameter or a field of Stream: half of the host work (reading, converting, checking) has no
/// stream, and loops many calls below an entry ask for the count.
class ThreadCount {
 public:
  explicit ThreadCount(int threads);
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int previous_;
};

/// The threads that OpenMP was told to take if OMP_NUM_THREADS is set; else `otherwise`.
int threads_of_environment(int otherwise);

/// True if OpenMP was told that threads without work sleep (OMP_WAIT_POLICY=passive). Waking them takes some 50 us.
bool threads_wait_asleep();

/// Work that is worth a thread, in values that are read or in like units: about 10 us.
inline constexpr std::int64_t kWorkOfAThread = std::int64_t{1} << 14;

/// Threads for so much work: all thread_count(), or 1 if waking them takes a good part of the time. Never a part of them:
/// GNU's OpenMP ends the threads that a region has less than the one before, and starts others for the next. A region of as
/// many threads as before begins within 1.4 us for 2 threads and 5.5 us for 16; after one of 8, one of 16 takes 600 us.
int threads_for(std::int64_t work);

/// The grain of parallel_ranges() for `count` elements that make so much work together.
std::int64_t grain_of(std::int64_t count, std::int64_t work);

/// CPU cores this process may use (its affinity mask and its cgroup's quota).
int usable_cores();
/// The cores of the affinity mask, as "0-3,8"; empty if the system does not tell.
std::string names_of_usable_cores();

/// Splits [0, count) into one contiguous range per thread (at least `grain` elements each, which are worth a thread: small
/// work stays on the caller, as threads_for() says) and calls body(begin, end) on each. The first exception thrown is
/// rethrown on the caller.
void parallel_ranges(std::int64_t count, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& body);

/// Calls body(i) for every task i in [0, tasks). Each thread has a share of consecutive tasks, the same in every call with
/// as many tasks and threads: memory that a thread touched first stays near it. A thread that is done helps the others.
void parallel_tasks(std::int64_t tasks, const std::function<void(std::int64_t)>& body);

}  // namespace shardmat
