// The 64-bit checksum of the shard file: XXH64, the same as in the xxhash libraries of other languages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardmat {

/// XXH64 of `bytes` bytes. For little-endian machines only, like the whole library.
std::uint64_t xxh64(const void* data, std::size_t bytes, std::uint64_t seed = 0);

}  // namespace shardmat
