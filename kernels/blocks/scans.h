// Sums before, and sorts by a key, on a GPU. All functions wait for the stream.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"

namespace shardmat::blocks {

template <class T>
Buffer array(std::int64_t count, const Stream& stream) {
  return Buffer(stream.device(), static_cast<std::size_t>(count) * sizeof(T));
}

/// starts[i] = counts[0] + … + counts[i − 1], in place. There are count + 1 of them; the last is not read. Returns the sum
/// of all.
std::int64_t sum_before(std::int64_t* counts, std::int64_t count, Stream& stream);

/// Items 0, 1 … by ascending keys from 0 to `most`; equal keys keep their order.
void sort_by_key(const std::int32_t* keys, std::int64_t count, std::int64_t most, std::int32_t* sorted_keys,
                 std::int32_t* items, Stream& stream);
void sort_by_key(const std::uint64_t* keys, std::int64_t count, std::uint64_t most, std::uint64_t* sorted_keys,
                 std::int32_t* items, Stream& stream);

}  // namespace shardmat::blocks
