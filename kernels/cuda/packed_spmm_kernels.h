// Packed rows with several right-hand sides on the device. G lanes of a warp hold a stretch of the columns of X and Y, so
// that a row of X arrives in whole cache lines; a warp multiplies 32 / G groups of a slice at a time. Sums stay in
// registers. Values and columns are read once for G·P·16 bytes of a row of Y; all loads of a few slots come before their
// products. All rows of a group reuse a row of X. Columns beyond G·P·16 bytes take further passes over the matrix. In this
// order the part of X in L2 serves more rows than if a block multiplied all columns of its slices.
//
// Each value type has 80 kernels; each packed_spmm_….cu instantiates half of them with SHARDMAT_MAKE_FOR.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/cuda/packed_csr_rows.h"
#include "kernels/cuda/packed_rows.h"
#include "kernels/cuda/packed_spmm.h"

namespace shardmat::packed::many {

using dense::Stretch;
using dense::Wide;

/// Threads of a block, and the number of blocks that must fit on a multiprocessor. If a group has several rows and a lane
/// the most columns, larger blocks are faster, because neighbouring slices share L1. With few columns more blocks are
/// faster.
template <class S, int G, int P>
constexpr int kBlock = S::B > 1 && G* P == 16 ? 512 : 256;
template <class S, int G, int P>
constexpr int kBlocksPerSm = S::B == 1                             ? 3
                             : S::B == 6 || kBlock<S, G, P> == 512 ? 1
                                                                   : 2;

/// The sums of a lane: the rows of its group times P stretches of columns.
template <class T, class S, int W, int P>
using Sums = T[S::B][P][W];

/// Columns of a piece whose values and rows of X are in registers at the same time.
template <class S>
constexpr int kColumnsAtOnce = S::B <= 3 ? S::B : 1;

/// Adds bundles b … b + U - 1 of piece `piece` of a group. `values`: the values of this kind, from the group's first value
/// on.
template <int U, class T, class S, int W, int G, int P, class Columns>
__device__ void add_bundles(int b, int piece, const T* values, const char* x, std::int32_t x_bytes, const Columns& columns,
                            Sums<T, S, W, P>& acc) {
  constexpr int V = S::template kInterleaved<T>, B = S::B, J = kColumnsAtOnce<S>;
  packed::Bundle<std::int32_t, V> at[U];
  T value[U][J][B][V];
  Wide<T, W> of_x[U][V][J][P];
  values += static_cast<std::int64_t>(b) * (S::kValues * V);
#pragma unroll
  for (int u = 0; u < U; ++u) at[u] = columns.bundle(b + u);
#pragma unroll
  for (int first = 0; first < B; first += J) {
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int j = 0; j < J; ++j)
#pragma unroll
        for (int r = 0; r < B; ++r)
          dense::stream<V>(value[u][j][r], values + (u * S::kValues + S::value_of(piece, first + j, r)) * V);
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int s = 0; s < V; ++s)
#pragma unroll
        for (int j = 0; j < J; ++j) {
          const char* row = x + static_cast<std::int64_t>(at[u].of[s] + first + j) * x_bytes;
#pragma unroll
          for (int q = 0; q < P; ++q) of_x[u][s][j][q] = dense::load<Wide<T, W>>(row + q * Stretch<T, W, G, P>::kStepBytes);
        }
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int s = 0; s < V; ++s)
#pragma unroll
        for (int j = 0; j < J; ++j)
#pragma unroll
          for (int q = 0; q < P; ++q)
#pragma unroll
            for (int w = 0; w < W; ++w)
#pragma unroll
              for (int r = 0; r < B; ++r) acc[r][q][w] = fma(value[u][j][r][s], of_x[u][s][j][q].of[w], acc[r][q][w]);
  }
}

/// Adds the slots of one kind to the sums of a group. columns_of(piece) returns the columns of a piece of the group.
template <class T, class S, int W, int G, int P, class ColumnsOf>
__device__ void add_slots(int slots, int group, const T* values, const char* x, std::int32_t x_bytes,
                          const ColumnsOf& columns_of, Sums<T, S, W, P>& acc) {
  constexpr int V = S::template kInterleaved<T>, U = S::B > 1 || V > 1 ? 1 : 3;
  const int bundles = slots / V, left = slots - bundles * V;
  const T* of_group = values + static_cast<std::int64_t>(group) * (S::kPieces * S::kLanesOfPiece * V);
#pragma unroll
  for (int piece = 0; piece < S::kPieces; ++piece) {
    const auto columns = columns_of(piece);
    int b = 0;
#pragma unroll 1
    for (; b + U <= bundles; b += U) add_bundles<U, T, S, W, G, P>(b, piece, of_group, x, x_bytes, columns, acc);
    if constexpr (U > 1)
#pragma unroll 1
      for (; b < bundles; ++b) add_bundles<1, T, S, W, G, P>(b, piece, of_group, x, x_bytes, columns, acc);
    if constexpr (V > 1)
#pragma unroll 1
      for (int k = 0; k < left; ++k) {
        const std::int32_t at = columns.left(bundles * V, k);
        const T* value = values + static_cast<std::int64_t>(bundles * V + k) * S::kValues;
#pragma unroll
        for (int j = 0; j < S::B; ++j)
#pragma unroll
          for (int q = 0; q < P; ++q) {
            const Wide<T, W> of_x = dense::load<Wide<T, W>>(x + static_cast<std::int64_t>(at + j) * x_bytes +
                                                            q * Stretch<T, W, G, P>::kStepBytes);
#pragma unroll
            for (int r = 0; r < S::B; ++r) {
              const T v = __ldg(value + S::value_of(group * S::kPieces + piece, j, r));
#pragma unroll
              for (int w = 0; w < W; ++w) acc[r][q][w] = fma(v, of_x.of[w], acc[r][q][w]);
            }
          }
      }
  }
}

/// Adds a group's rows of a slice stored as CSR rows.
template <class T, class S, int W, int G, int P>
__device__ void add_csr_rows(const PackedSlice& slice, const packed::Arguments<T>& a, int group, const T* values,
                             const char* x, std::int32_t x_bytes, Sums<T, S, W, P>& acc) {
  const std::int32_t* offsets = a.deltas + slice.deltas;
  const auto* columns = reinterpret_cast<const std::int32_t*>(a.indices + std::uint64_t{slice.indices} * kPackedUnit);
  const int lanes = packed::lanes_of_csr_row<S>(offsets);
#pragma unroll
  for (int r = 0; r < S::B; ++r) {
    const std::int32_t begin = __ldg(offsets + group * S::B + r), end = __ldg(offsets + group * S::B + r + 1);
    packed::add_csr_row<T, W, G, P>(begin, end, packed::stretch_of_csr_row(end - begin, lanes), columns, values, x, x_bytes,
                                    acc[r]);
  }
}

template <class T, class S, int W, int G, int P>
__global__ void __launch_bounds__(kBlock<S, G, P>, kBlocksPerSm<S, G, P>)
    packed_spmm(const packed::Arguments<T> a, const dense::Rows<T> v, int first_column, int slices) {
  constexpr int kTogether = kPackedLanes / G, kParts = (S::kGroups + kTogether - 1) / kTogether;
  constexpr int V = S::template kInterleaved<T>;
  const int lane = static_cast<int>(threadIdx.x) % kPackedLanes, warp = static_cast<int>(threadIdx.x) / kPackedLanes;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * slices;
  const int items = static_cast<int>(min(std::int64_t{slices}, a.count - first)) * kParts;
  const Stretch<T, W, G, P> columns(v, first_column + static_cast<int>(blockIdx.y) * Stretch<T, W, G, P>::kColumns, lane);
  const char* x = columns.x(v);
  for (int item = warp; item < items; item += kBlock<S, G, P> / kPackedLanes) {
    const PackedSlice slice = packed::load_slice(a.slices + first + item / kParts);
    packed::wait_if_late(slice, x);
    // Lanes beyond the last group compute the same as the last group.
    const int wanted = item % kParts * kTogether + lane / G, group = min(wanted, slice.real - 1);
    const std::int64_t row = packed::first_row<S>(slice, a, group);
    const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
    Sums<T, S, W, P> acc = {};
    if (slice.csr) {
      add_csr_rows<T, S, W, G, P>(slice, a, group, values, x, v.x_bytes, acc);
    } else {
      const packed::SlotCounts<S> counts(slice);
      const std::int32_t* deltas = a.deltas + slice.deltas;
      const char* narrow = a.indices + std::uint64_t{slice.indices} * kPackedUnit;
      const auto* full = reinterpret_cast<const std::int32_t*>(narrow + counts.narrow_bytes());
      const int index = group * S::kPieces;
      if (slice.slots[kSharedSlot] > 0)
        add_slots<T, S, W, G, P>(
            slice.slots[kSharedSlot], group, values, x + row * v.x_bytes, v.x_bytes,
            [&](int p) {
              return packed::SharedColumns<V>{deltas, p, S::kPieces};
            },
            acc);
      if (slice.slots[kNarrowSlot] > 0)
        add_slots<T, S, W, G, P>(
            slice.slots[kNarrowSlot], group, values + counts.values(kNarrowSlot), x, v.x_bytes,
            [&](int p) {
              return packed::NarrowColumns<S, V>{narrow, index + p};
            },
            acc);
      if (slice.slots[kFullSlot] > 0)
        add_slots<T, S, W, G, P>(
            slice.slots[kFullSlot], group, values + counts.values(kFullSlot), x, v.x_bytes,
            [&](int p) {
              return packed::FullColumns<V>{full, index + p, S::kIndices};
            },
            acc);
    }
#pragma unroll
    for (int r = 0; r < S::B; ++r)
      if (wanted == group && row + r >= 0 && row + r < a.rows) columns.store(v, row + r, acc[r]);
  }
}

template <class T, class S>
struct Instance {
  decltype(&packed_spmm<T, S, dense::kWidth<T>, 1, 1>) kernel = nullptr;
  int block_size = 0;
};
template <class T, class S, int G, int P, int W = dense::kWidth<T>>
Instance<T, S> instance_of() {
  return {packed_spmm<T, S, W, G, P>, kBlock<S, G, P>};
}

/// Selects the instance for a policy. REQUIRES: SpmmShape::exists().
template <class T, class S>
Instance<T, S> instance(int lanes, int passes) {
  switch (dense::shape_of(lanes, passes)) {
    case 11:
      return instance_of<T, S, 1, 1>();
    case 21:
      return instance_of<T, S, 2, 1>();
    case 22:
      return instance_of<T, S, 2, 2>();
    case 41:
      return instance_of<T, S, 4, 1>();
    case 42:
      return instance_of<T, S, 4, 2>();
    case 81:
      return instance_of<T, S, 8, 1>();
    default:
      return instance_of<T, S, 8, 2>();
  }
}

}  // namespace shardmat::packed::many

namespace shardmat::packed {

template <class T, class S>
void multiply_many(const PackedStorage& a, const dense::Rows<T>& v, const SpmmShape& shape, Stream& on) {
  const Arguments<T> matrix = arguments<T>(a, {});
  const auto launch = [&](const many::Instance<T, S>& one, int first, int blocks) {
    cuda::launch_grid_beside(a.expects_late, one.kernel, (a.slices + shape.slices - 1) / shape.slices, blocks,
                             static_cast<unsigned>(one.block_size), 0, on, matrix, v, first, shape.slices);
  };
  if (v.columns == 2) return launch(many::instance_of<T, S, 1, 1, 2>(), 0, 1);
  dense::split_columns(
      v.columns, dense::kWidth<T>, shape.lanes, shape.passes,
      [&](int first, int blocks) { launch(many::instance<T, S>(shape.lanes, shape.passes), first, blocks); },
      [&](int first, int few) { launch(many::instance<T, S>(few, 1), first, 1); });
}

#define SHARDMAT_MAKE_FOR(T, B, L) \
  template void multiply_many<T, Shape<B, L>>(const PackedStorage&, const dense::Rows<T>&, const SpmmShape&, Stream&);

}  // namespace shardmat::packed
