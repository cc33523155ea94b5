// The 64-bit checksum of the shard file: XXH64, the same as in the xxhash libraries of other languages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardmat {

/// XXH64 of `bytes` bytes. For little-endian machines only, like the whole library.
std::uint64_t xxh64(const void* data, std::size_t bytes, std::uint64_t seed = 0);

/// The same of bytes that come piece by piece.
class Xxh64 {
 public:
  explicit Xxh64(std::uint64_t seed = 0);
  void add(const void* data, std::size_t bytes);
  /// Adds the numbers as 64-bit numbers.
  void add_widened(std::span<const std::int32_t> numbers);
  std::uint64_t digest() const;

 private:
  void add_stripe(const unsigned char* stripe);

  std::uint64_t seed_, lanes_[4], bytes_ = 0;
  unsigned char rest_[32];  ///< the last bytes_ % 32 bytes
};

}  // namespace shardmat
