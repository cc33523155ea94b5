#include "tools/bench/streams.h"

#include <algorithm>
#include <atomic>

#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/host/lanes.h"

namespace shardmat::tools {
namespace {

constexpr std::int64_t kGrain = 1 << 16;

template <class Set>
SHARDMAT_INLINE void add_scaled(double* a, const double* b, const double* c, std::int64_t begin, std::int64_t end) {
  constexpr int kLanes = Set::kBytes / sizeof(double);
  for (std::int64_t i = begin; i + kLanes <= end; i += kLanes) store(a + i, load<kLanes>(b + i) + 3.0 * load<kLanes>(c + i));
}

template <class Set>
SHARDMAT_INLINE double sum_of(const double* b, std::int64_t begin, std::int64_t end) {
  constexpr int kLanes = Set::kBytes / sizeof(double), kSums = 8;
  Lanes<double, kLanes> sums[kSums] = {};
  for (std::int64_t i = begin; i + kSums * kLanes <= end; i += kSums * kLanes)
#pragma GCC unroll 8
    for (int s = 0; s < kSums; ++s) sums[s] += load<kLanes>(b + i + s * kLanes);
  Lanes<double, kLanes> all = {};
  for (const auto& one : sums) all += one;
  double total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += all[lane];
  return total;
}

}  // namespace

Streams::Streams() {
  constexpr std::size_t kBytes = kEntries * sizeof(double);
  require_host_memory(3 * static_cast<std::int64_t>(kBytes), "the arrays that measure the memory");
  a_ = Buffer(Device{}, kBytes), b_ = Buffer(Device{}, kBytes), c_ = Buffer(Device{}, kBytes);
  parallel_ranges(kEntries, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (Buffer* array : {&a_, &b_, &c_}) std::fill(array->as<double>() + begin, array->as<double>() + end, 1.0);
  });
}

void Streams::triad() {
  parallel_ranges(kEntries, kGrain, [&](std::int64_t begin, std::int64_t end) {
    run_compiled_for(instruction_set(), [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
      add_scaled<Set>(a_.as<double>(), b_.as<double>(), c_.as<double>(), begin, end);
    });
  });
}

void Streams::sum() {
  std::atomic<double> total = 0;
  parallel_ranges(kEntries, kGrain, [&](std::int64_t begin, std::int64_t end) {
    run_compiled_for(instruction_set(),
                     [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA { total += sum_of<Set>(b_.as<double>(), begin, end); });
  });
  total_ = total;
}

std::vector<StreamLoop> Streams::loops() {
  constexpr double kCount = static_cast<double>(kEntries);
  return {{"triad", 32 * kCount, [this] { triad(); }}, {"sum", 8 * kCount, [this] { sum(); }}};
}

}  // namespace shardmat::tools
