// Blocked CSR on host threads, a block row at a time; the block size is known at compile time. block_rows.h has the order of
// summation.
#include <algorithm>
#include <array>

#include "kernels/formats/bcsr.h"
#include "kernels/host/block_rows.h"
#include "kernels/host/lanes.h"
#include "kernels/host/ranges.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

/// Lanes of the vectors that a block of B·B values, row by row, is cut into: as many as leave at most one value over.
template <class Set, class T, int B>
constexpr int lanes_of_block() {
  int lanes = std::min<int>(Set::kBytes, 32) / static_cast<int>(sizeof(T));
  while (B * B % lanes > 1) lanes /= 2;
  return lanes;
}

/// The entries of x for values first … first + kLanes - 1 of a block: x[first % B], x[(first + 1) % B] ….
template <int kLanes, int B, class T, std::size_t... kLane>
SHARDMAT_INLINE Lanes<T, kLanes> repeat_x(const T* x, int first, std::index_sequence<kLane...>) {
  if constexpr (kLanes == 2 || B > 2 * kLanes) {
    return Lanes<T, kLanes>{x[(first + static_cast<int>(kLane)) % B]...};
  } else {
    using Int = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
    if constexpr (B <= kLanes) {
      const Lanes<T, kLanes> all{(kLane < B ? x[kLane % B] : T(0))...};
      return __builtin_shuffle(all, Lanes<Int, kLanes>{(first + static_cast<Int>(kLane)) % B...});
    } else {
      const auto at = [&](int lane) {
        return (first + lane) % B < kLanes ? (first + lane) % B : (first + lane) % B + 2 * kLanes - B;
      };
      return __builtin_shuffle(load<kLanes>(x), load<kLanes>(x + B - kLanes), Lanes<Int, kLanes>{at(kLane)...});
    }
  }
}

/// Bytes of a matrix that comes from memory rather than from the caches. Then values are prefetched a page ahead: with so
/// little arithmetic between the loads, the CPU by itself prefetches too late.
constexpr std::int64_t kFromMemory = std::int64_t{16} << 20;
/// Entries of an x of more bytes than this are prefetched for the block so many places on; a smaller x stays in the caches.
constexpr std::int64_t kLargeX = std::int64_t{4} << 20, kBlocksAhead = 24;

template <class Set, class T, int B, bool kPrefetch>
SHARDMAT_INLINE void multiply_block_row(const BlockRows<T>& a, const Operands<T>& v, std::int64_t i,
                                        std::int64_t prefetched_blocks) {
  constexpr int kLanes = lanes_of_block<Set, T, B>(), kPacks = B * B / kLanes, kRest = B * B % kLanes;
  struct Sums {
    Lanes<T, kLanes> packs[kPacks] = {};
    T rest = 0;
  } sums[kChains<B>];
  const auto add = [&](Sums& to, const T* block, const T* x) SHARDMAT_INLINE_LAMBDA {
#pragma GCC unroll 18
    for (int p = 0; p < kPacks; ++p)
      add_product<Set>(to.packs[p], load<kLanes>(block + p * kLanes),
                       repeat_x<kLanes, B>(x, p * kLanes, std::make_index_sequence<kLanes>()));
    if constexpr (kRest == 1) add_product<Set>(to.rest, block[B * B - 1], x[B - 1]);
  };
  const auto add_block = [&](Sums& to, std::int64_t k) SHARDMAT_INLINE_LAMBDA {
    for (std::size_t line = 0; kPrefetch && line < B * B * sizeof(T); line += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(a.values + k * (B * B)) + 4096 + line);
    if (kPrefetch && k + kBlocksAhead < prefetched_blocks)
      __builtin_prefetch(v.x + std::int64_t{a.block_col[k + kBlocksAhead]} * B);
    const std::int64_t column = std::int64_t{a.block_col[k]} * B;
    if (column + B <= a.cols) {
      add(to, a.values + k * (B * B), v.x + column);
    } else {  // the block extends beyond the matrix
      T of_x[B] = {};
      for (std::int64_t c = column; c < a.cols; ++c) of_x[c - column] = v.x[c];
      add(to, a.values + k * (B * B), of_x);
    }
  };
  std::int64_t k = a.offset(i);
  const std::int64_t last = a.offset(i + 1);
  for (; k + kChains<B> <= last; k += kChains<B>)
    for (int chain = 0; chain < kChains<B>; ++chain) add_block(sums[chain], k + chain);
  if (kChains<B> == 2 && k < last) add_block(sums[0], k);
  T sum[B * B] = {};
  for (int chain = 0; chain < kChains<B>; ++chain) {
    T of_chain[B * B];
    std::memcpy(of_chain, sums[chain].packs, sizeof sums[chain].packs);
    if constexpr (kRest == 1) of_chain[B * B - 1] = sums[chain].rest;
    for (int e = 0; e < B * B; ++e) sum[e] += of_chain[e];
  }
  for (int r = 0; r < B; ++r) {
    if (i * B + r >= a.rows) return;
    T total = sum[r * B];
    for (int c = 1; c < B; ++c) total += sum[r * B + c];
    put<Set>(v.y[i * B + r], v.alpha * total, v.beta);
  }
}

}  // namespace

std::unique_ptr<Plan> make_bcsr_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  const auto& a = static_cast<const BcsrStorage&>(*storage);
  return typed_plan<BcsrStorage>(storage, [starts = even_block_row_starts(a), isa = instruction_set()]<class T>(
                                              const BcsrStorage& m, const Operands<T>& v, Stream&) {
    const BlockRows<T> rows(m);
    const bool large_x = m.cols * static_cast<std::int64_t>(sizeof(T)) > kLargeX;
    const std::int64_t prefetched_blocks = large_x ? rows.offset(m.block_rows) : 0;
    for_each_range(starts, isa, [&]<class Set>(Set, std::int64_t begin, std::int64_t end) SHARDMAT_INLINE_LAMBDA {
      with_block_size(m.block(), [&]<int B>(std::integral_constant<int, B>) SHARDMAT_INLINE_LAMBDA {
        if (m.bytes > kFromMemory)
          for (std::int64_t i = begin; i < end; ++i) multiply_block_row<Set, T, B, true>(rows, v, i, prefetched_blocks);
        else
          for (std::int64_t i = begin; i < end; ++i) multiply_block_row<Set, T, B, false>(rows, v, i, 0);
      });
    });
  });
}

}  // namespace shardmat
