#include "kernels/base/kept_arrays.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <numeric>

#include "kernels/base/host_vector.h"

namespace shardmat {
namespace {

constexpr std::size_t kEntries = 1 << 20;  // 8 MB

HostVector<double> numbered(std::size_t entries, double from) {
  HostVector<double> array(entries);
  std::iota(array.begin(), array.end(), from);
  return array;
}

TEST(KeptArrays, FreedArraysAreUsedAgainWhileOneLives) {
  const HostVector<double> lives = numbered(4 * kEntries, 0);
  const KeptArrays reuse;
  const double* before = nullptr;
  {
    const HostVector<double> freed = numbered(kEntries, 1);
    before = freed.data();
  }
  const HostVector<double> next = numbered(kEntries * 3 / 4, 2), another = numbered(kEntries * 3 / 4, 3);
  EXPECT_EQ(next.data(), before);
  EXPECT_NE(another.data(), before);  // it is in use
  for (std::size_t i = 0; i < next.size(); i += 997) {
    ASSERT_EQ(next[i], static_cast<double>(i) + 2);
    ASSERT_EQ(another[i], static_cast<double>(i) + 3);
  }
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

TEST(KeptArrays, TheirMemoryIsFreedAtTheEndAndWhereItIsMissing) {
  const auto bytes = static_cast<std::int64_t>(16 * kEntries * sizeof(double));
  std::int64_t with = 0;
  const auto free_one = [&] {
    const HostVector<double> freed = numbered(16 * kEntries, 1);
    with = resident_bytes();
  };
  {
    const KeptArrays reuse;
    free_one();
    EXPECT_GT(resident_bytes(), with - bytes / 2);
    free_kept_arrays();
    EXPECT_LT(resident_bytes(), with - bytes / 2);
    free_one();
  }
  EXPECT_LT(resident_bytes(), with - bytes / 2);
}

TEST(KeptArrays, ArraysMayOutliveThemAndGrow) {
  HostVector<double> grows = numbered(10, 0);
  {
    const KeptArrays outer;
    const KeptArrays inner;
    for (std::size_t size = 11; size < kEntries; size = size * 3 / 2) grows.resize(size, 7.0);
  }
  grows.resize(2 * kEntries, 8.0);
  EXPECT_EQ(grows[9], 9);
  EXPECT_EQ(grows[10], 7);
  EXPECT_EQ(grows.back(), 8);
}

}  // namespace
}  // namespace shardmat
