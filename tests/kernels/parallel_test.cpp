#include "kernels/base/parallel.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace shardmat {
namespace {

TEST(ThreadCount, IsOfTheThreadAndTheScope) {
  const int before = thread_count();
  {
    const ThreadCount three(3);
    EXPECT_EQ(thread_count(), 3);
    int of_other = 0;
    std::thread([&] { of_other = thread_count(); }).join();
    EXPECT_EQ(of_other, before);
    {
      const ThreadCount at_least_one(0);
      EXPECT_EQ(thread_count(), 1);
    }
    EXPECT_EQ(thread_count(), 3);
    EXPECT_EQ(omp_get_max_threads(), before) << "the settings of OpenMP belong to the program";
  }
  EXPECT_EQ(thread_count(), before);
}

TEST(ParallelRanges, TakeThreadsOfTheScopeAndNestNone) {
  const ThreadCount three(3);
  std::vector<int> team(3), inside(3);
  parallel_ranges(3, 1, [&](std::int64_t begin, std::int64_t end) {
    ASSERT_EQ(end, begin + 1);
    team[static_cast<std::size_t>(begin)] = omp_get_num_threads();
    inside[static_cast<std::size_t>(begin)] = thread_count();
  });
  EXPECT_EQ(team, std::vector<int>(3, 3));
  EXPECT_EQ(inside, std::vector<int>(3, 1));
  EXPECT_EQ(thread_count(), 3);
}

/// Teams of changing size would end threads and start others.
TEST(ParallelRanges, TakeAllThreadsOrOne) {
  for (const auto& [threads, shares, team] :
       {std::array{4, 1, 1}, std::array{4, 2, 4}, std::array{4, 3, 4}, std::array{32, 3, 1}, std::array{32, 5, 32}}) {
    const ThreadCount scope(threads);
    EXPECT_EQ(threads_for(shares * kWorkOfAThread), team);
    std::atomic<int> ranges = 0, elements = 0, teams = 0;
    parallel_ranges(10 * shares + 9, 10, [&](std::int64_t begin, std::int64_t end) {
      ++ranges, elements += static_cast<int>(end - begin), teams += omp_get_num_threads();
    });
    EXPECT_EQ(elements, 10 * shares + 9);
    EXPECT_EQ(ranges, team == 1 ? 1 : std::min(shares, team));
    EXPECT_EQ(teams, ranges * team);
  }
  EXPECT_EQ(grain_of(1000, 1000 * kWorkOfAThread), 1);
  EXPECT_EQ(grain_of(1000, 4000), kWorkOfAThread / 4);
  EXPECT_EQ(grain_of(0, 0), kWorkOfAThread);
}

/// Tasks wait for each other until each thread has begun, so each thread's first task tells its share.
TEST(ParallelTasks, BeginInAShareForEachThread) {
  const ThreadCount three(3);
  std::atomic<int> begun = 0;
  std::vector<std::int64_t> first(3, -1);
  parallel_tasks(10, [&](std::int64_t i) {
    std::int64_t& mine = first[static_cast<std::size_t>(omp_get_thread_num())];
    if (mine >= 0) return;
    mine = i;
    for (++begun; begun < 3;) std::this_thread::yield();
  });
  EXPECT_EQ(first, (std::vector<std::int64_t>{0, 3, 6}));
}

TEST(ParallelTasks, AreAllDoneOnceAndAnExceptionComesOut) {
  const ThreadCount four(4);
  for (const std::int64_t tasks : {0, 1, 2, 3, 5}) {
    std::vector<std::atomic<int>> few(static_cast<std::size_t>(tasks));
    parallel_tasks(tasks, [&](std::int64_t i) { ++few[static_cast<std::size_t>(i)]; });
    for (const auto& times : few) EXPECT_EQ(times, 1) << tasks << " tasks";
  }
  std::vector<std::atomic<int>> done(100);
  parallel_tasks(100, [&](std::int64_t i) { ++done[static_cast<std::size_t>(i)]; });
  for (const auto& times : done) EXPECT_EQ(times, 1);
  EXPECT_THROW(parallel_tasks(100,
                              [](std::int64_t i) {
                                if (i == 57) throw std::runtime_error("57");
                              }),
               std::runtime_error);
  EXPECT_EQ(thread_count(), 4) << "a task that throws leaves the count";
}

}  // namespace
}  // namespace shardmat
