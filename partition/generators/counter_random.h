// Random numbers as a pure function of (seed, stream, index). So each rank can make the numbers of its own rows without the
// numbers before them, and they do not depend on the version of a library. The mixing function is that of splitmix64
// (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
#pragma once

#include <cstdint>

namespace shardmat {

class CounterRandom {
 public:
  /// Independent numbers for each seed and stream.
  constexpr CounterRandom(std::uint64_t seed, std::uint64_t stream) : key_(mix(mix(seed + kStep) + stream * kStep)) {}

  /// The generator of item `id`, e.g. of one row.
  constexpr CounterRandom of(std::int64_t id) const {
    return CounterRandom(mix(key_ + static_cast<std::uint64_t>(id) * kItemStep));
  }

  /// What all numbers follow from: for generators on other devices.
  constexpr std::uint64_t key() const { return key_; }

  constexpr std::uint64_t bits(std::int64_t index) const {
    return mix(key_ + (static_cast<std::uint64_t>(index) + 1) * kStep);
  }
  /// Uniform in [0, 1).
  constexpr double unit(std::int64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }
  /// Uniform in [-1, 1).
  constexpr double symmetric(std::int64_t index) const { return 2 * unit(index) - 1; }
  /// Uniform in [0, count); count > 0. The bias is below count / 2^64.
  constexpr std::int64_t below(std::int64_t count, std::int64_t index) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::int64_t>((static_cast<Wide>(bits(index)) * static_cast<std::uint64_t>(count)) >> 64);
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15, kItemStep = 0xd1342543de82ef95;

  explicit constexpr CounterRandom(std::uint64_t key) : key_(key) {}
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::uint64_t key_;
};

}  // namespace shardmat
