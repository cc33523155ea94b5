// The 64-bit checksum of the shard file: XXH64, as the xxhash libraries of other languages compute it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardmat {

/// XXH64 of `bytes` bytes. Little-endian machines only, as is everything this builds for.
std::uint64_t xxh64(const void* data, std::size_t bytes, std::uint64_t seed = 0);

}  // namespace shardmat
