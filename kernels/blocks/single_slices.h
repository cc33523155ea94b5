// How slices of single entries lie in memory: what their set-up writes and their products read (single_product.h).
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/blocks/small_blocks.h"

namespace shardmat::blocks::singles {

constexpr int kFewPairs = 3;  ///< of a short row

enum class Columns : unsigned { shared, narrow, wide };
/// Units of 8 bytes that the columns of a pair take.
__host__ __device__ constexpr std::int64_t units(Columns kind) {
  return kind == Columns::shared ? 1 : kind == Columns::narrow ? 1 + kLanes / 2 : kLanes;
}

struct alignas(16) Slice {
  unsigned value;   ///< its first pair
  unsigned column;  ///< the first unit of its columns
  unsigned meta;    ///< from the lowest bit: pairs 16, Columns 2, rows 6
  float scale;      ///< 0: each row has its own

  __device__ int pairs() const { return static_cast<int>(meta & 0xffff); }
  __device__ Columns kind() const { return static_cast<Columns>(meta >> 16 & 3); }
  __device__ int rows() const { return static_cast<int>(meta >> 18); }
};

/// Two values, side by side.
template <class V>
struct PairOf;
template <>
struct PairOf<float> {
  using Type = float2;
};
template <>
struct PairOf<__half> {
  using Type = __half2;
};
__device__ inline float2 widened(float2 pair) { return pair; }
__device__ inline float2 widened(__half2 pair) { return __half22float2(pair); }

}  // namespace shardmat::blocks::singles
