#include "kernels/base/kept_arrays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/zeros.h"

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

/// Arrays of 200 to 300 kB lie in shared pages, which live as long as one of them, and serve others afterwards.
TEST(KeptArrays, MediumArraysShareHugePages) {
  constexpr std::size_t kCount = 200, kOfEach = 25'000;
  const auto all = static_cast<std::int64_t>(kCount * kOfEach * sizeof(double));
  std::int64_t first_round = 0;
  for (int round = 0; round < 5; ++round) {
    std::vector<HostVector<double>> arrays;
    {
      const KeptArrays reuse;
      for (std::size_t i = 0; i < kCount; ++i) arrays.push_back(numbered(kOfEach + i * 60, static_cast<double>(i)));
      std::size_t neighbours = 0;
      for (std::size_t i = 1; i < kCount; ++i)
        neighbours +=
            arrays[i - 1].data() + arrays[i - 1].size() + 33 > arrays[i].data() && arrays[i - 1].data() < arrays[i].data();
      EXPECT_GT(neighbours, kCount / 2);
      for (std::size_t i = 0; i < kCount; i += 2) arrays[i] = {};
    }
    for (std::size_t i = 1; i < kCount; i += 2)
      for (std::size_t k = 0; k < arrays[i].size(); k += 101) ASSERT_EQ(arrays[i][k], static_cast<double>(i + k));
    arrays.clear();
    if (round == 0) first_round = resident_bytes();
  }
  EXPECT_LT(resident_bytes(), first_round + all / 2);
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

/// Freed memory of a GPU may still be written to: its next owner waits for that.
TEST(GpuKeptArrays, BuffersAreUsedAgainWhenTheDeviceIsDoneWithThem) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Device device{Backend::cuda, 0};
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  Stream one(device), other(device);
  const Buffer lives(device, 4 * kBytes);
  const KeptArrays reuse;
  const void* before = nullptr;
  {
    const Buffer freed(device, kBytes);
    before = freed.data();
    for (unsigned char byte = 1; byte <= 20; ++byte) fill_bytes(freed.data(), byte, kBytes, one);
  }
  const Buffer next(device, kBytes / 4 * 3);
  EXPECT_EQ(next.data(), before);
  fill_bytes(next.data(), 77, next.bytes(), other);
  other.synchronize(), one.synchronize();
  std::vector<unsigned char> bytes(next.bytes());
  copy_to_host(bytes.data(), next.data(), bytes.size(), other);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 77), std::ssize(bytes));
  const Buffer clear = zeros(device, 1000);
  copy_to_host(bytes.data(), clear.data(), clear.bytes(), other);
  EXPECT_EQ(std::count(bytes.begin(), bytes.begin() + 1000, 0), 1000);
}

}  // namespace
}  // namespace shardmat
