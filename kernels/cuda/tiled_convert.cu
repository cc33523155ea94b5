// Conversion to tiled rows on the device, from CSR there: groups of rows and their neighbours, the columns of tiles, values.
// The host grows the tiles and orders their rows meanwhile: this is little work for it, and much for a GPU.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/cuda/cub_scratch.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/tiled_build.h"
#include "kernels/formats/upload.h"
#include "kernels/typed_plan.h"

namespace shardmat::tiled {
namespace {

constexpr int kBlock = 256, kLanesOfRow = 8, kTileBlock = 1024;

/// CSR on the device, with offsets of either width.
struct Matrix {
  const std::int32_t* narrow;
  const std::int64_t* wide;
  const std::int32_t* col_idx;
  std::int64_t rows, diagonal;

  __device__ std::int64_t begin(std::int64_t row) const { return wide != nullptr ? wide[row] : narrow[row]; }
  __device__ std::int64_t length(std::int64_t row) const { return begin(row + 1) - begin(row); }
  /// The row of the same vertex as the column of nonzero k; -1 if there is none.
  __device__ std::int64_t vertex(std::int64_t k) const {
    const std::int64_t row = col_idx[k] - diagonal;
    return row >= 0 && row < rows ? row : -1;
  }
};

Matrix matrix_of(ConversionInput& input) {
  const CsrStorage& csr = *input.csr();
  return {csr.wide_offsets ? nullptr : csr.row_ptr.as<std::int32_t>(),
          csr.wide_offsets ? csr.row_ptr.as<std::int64_t>() : nullptr, csr.col_idx.as<std::int32_t>(), csr.rows,
          input.matrix().diagonal};
}

/// kLanesOfRow lanes a row.
__global__ void find_leaders(Matrix a, std::int32_t* __restrict__ leader) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t row = min(thread / kLanesOfRow, a.rows - 1), end = a.begin(row + 1);
  auto best = static_cast<std::int32_t>(row);
  std::uint64_t most = rank_of_row(best, a.length(row));
  const auto compare = [&](std::int32_t other, std::uint64_t rank) {
    if (rank > most) most = rank, best = other;
  };
  for (std::int64_t k = a.begin(row) + thread % kLanesOfRow; k < end; k += kLanesOfRow)
    if (const auto other = static_cast<std::int32_t>(a.vertex(k)); other >= 0)
      compare(other, rank_of_row(other, a.length(other)));
  for (int offset = kLanesOfRow / 2; offset > 0; offset /= 2) {
    const std::int32_t other = __shfl_xor_sync(0xffffffffu, best, offset);
    compare(other, __shfl_xor_sync(0xffffffffu, most, offset));
  }
  if (thread % kLanesOfRow == 0 && thread / kLanesOfRow < a.rows) leader[row] = best;
}

__global__ void follow_leaders(std::int64_t rows, const std::int32_t* __restrict__ leader, std::int32_t* __restrict__ next,
                               std::int32_t* changed) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  next[row] = leader[leader[row]];
  if (next[row] != leader[row]) *changed = 1;
}

__global__ void mark_leaders(std::int64_t rows, const std::int32_t* __restrict__ leader, std::int32_t* __restrict__ leads) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < rows) leads[row] = leader[row] == row;
}

__global__ void number_groups(std::int64_t rows, const std::int32_t* __restrict__ leader,
                              const std::int32_t* __restrict__ number, std::int32_t* __restrict__ of) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < rows) of[row] = number[leader[row]];
}

constexpr unsigned long long kNoPair = ~0ull;
using Pair = unsigned long long;  ///< group · 2^32 + neighbour

/// Puts each pair of neighbours into a table with open addressing once. `full` becomes 1 if there is no place.
__global__ void find_pairs(Matrix a, const std::int32_t* __restrict__ of, Pair* table, std::uint32_t mask,
                           std::int32_t* full) {
  constexpr int kMostProbes = 128;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, row = thread / kLanesOfRow;
  if (row >= a.rows) return;
  const std::int64_t end = a.begin(row + 1);
  const auto group = static_cast<std::uint32_t>(of[row]);
  std::uint32_t last = group;
  for (std::int64_t k = a.begin(row) + thread % kLanesOfRow; k < end; k += kLanesOfRow) {
    const std::int64_t vertex = a.vertex(k);
    const std::uint32_t other = vertex < 0 ? group : static_cast<std::uint32_t>(of[vertex]);
    if (other == group || other == last) continue;
    last = other;
    const Pair pair = Pair{group} << 32 | other;
    auto place = static_cast<std::uint32_t>((pair * 0x9e3779b97f4a7c15ull) >> 32) & mask;
    int probes = 0;
    for (; probes < kMostProbes; ++probes, place = (place + 1) & mask) {
      Pair found = *static_cast<volatile Pair*>(table + place);
      if (found == kNoPair) found = atomicCAS(table + place, kNoPair, pair);
      if (found == kNoPair || found == pair) break;
    }
    if (probes == kMostProbes) *full = 1;
  }
}

struct IsPair {
  __device__ bool operator()(Pair pair) const { return pair != kNoPair; }
};

std::int32_t read(const Buffer& number, Stream& stream) {
  std::int32_t value = 0;
  copy_to_host(&value, number.data(), sizeof(value), stream);
  return value;
}

/// All pairs, ascending.
std::vector<Pair> neighbours(const Matrix& a, std::int64_t nnz, const Buffer& of, std::int64_t groups, Stream& stream) {
  constexpr std::uint64_t kUsual = 64, kLeast = 1 << 12;  // places for each group; places
  const std::uint64_t most = std::bit_ceil(4 * static_cast<std::uint64_t>(nnz) + kLeast);
  const Buffer number(stream.device(), sizeof(std::int32_t));
  for (auto places = std::min(most, std::bit_ceil(kUsual * static_cast<std::uint64_t>(groups) + kLeast));;
       places = std::min(4 * places, most)) {
    const Buffer table(stream.device(), places * sizeof(Pair));
    fill_bytes(table.data(), 0xff, table.bytes(), stream);
    fill_bytes(number.data(), 0, number.bytes(), stream);
    cuda::launch(find_pairs, a.rows * kLanesOfRow, kBlock, stream, a, of.as<std::int32_t>(), table.as<Pair>(),
                 static_cast<std::uint32_t>(places - 1), number.as<std::int32_t>());
    if (read(number, stream) != 0) {
      if (places < most) continue;
      throw Error(ErrorKind::resources, "format tiled does not suit this matrix: too many of its rows are neighbours");
    }
    const Buffer found(stream.device(), table.bytes());
    cuda::with_scratch(stream, [&](void* workspace, std::size_t& bytes) {
      return cub::DeviceSelect::If(workspace, bytes, table.as<Pair>(), found.as<Pair>(), number.as<std::int32_t>(),
                                   static_cast<std::int64_t>(places), IsPair{}, stream.native());
    });
    const std::int32_t count = read(number, stream);
    cuda::with_scratch(stream, [&](void* workspace, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(workspace, bytes, found.as<Pair>(), table.as<Pair>(), count, 0, 64,
                                            stream.native());
    });
    std::vector<Pair> pairs(static_cast<std::size_t>(count));
    if (count > 0) copy_to_host(pairs.data(), table.data(), pairs.size() * sizeof(Pair), stream);
    stream.synchronize();
    return pairs;
  }
}

RowGroups group(ConversionInput& input) {
  Stream& stream = input.stream();
  const Matrix a = matrix_of(input);
  RowGroups groups;
  if (a.rows == 0) return groups;
  const Device device = stream.device();
  const auto bytes = static_cast<std::size_t>(a.rows) * sizeof(std::int32_t);
  Buffer leader(device, bytes), next(device, bytes);
  const Buffer changed(device, sizeof(std::int32_t));
  cuda::launch(find_leaders, a.rows * kLanesOfRow, kBlock, stream, a, leader.as<std::int32_t>());
  do {
    fill_bytes(changed.data(), 0, changed.bytes(), stream);
    cuda::launch(follow_leaders, a.rows, kBlock, stream, a.rows, leader.as<std::int32_t>(), next.as<std::int32_t>(),
                 changed.as<std::int32_t>());
    std::swap(leader, next);
  } while (read(changed, stream) != 0);

  const Buffer number(device, bytes + sizeof(std::int32_t));
  fill_bytes(number.data(), 0, number.bytes(), stream);
  cuda::launch(mark_leaders, a.rows, kBlock, stream, a.rows, leader.as<std::int32_t>(), next.as<std::int32_t>());
  cuda::with_scratch(stream, [&](void* workspace, std::size_t& size) {
    return cub::DeviceScan::InclusiveSum(workspace, size, next.as<std::int32_t>(), number.as<std::int32_t>() + 1, a.rows,
                                         stream.native());
  });
  cuda::launch(number_groups, a.rows, kBlock, stream, a.rows, leader.as<std::int32_t>(), number.as<std::int32_t>(),
               next.as<std::int32_t>());
  std::int32_t count = 0;
  copy_to_host(&count, number.as<std::int32_t>() + a.rows, sizeof(count), stream);
  groups.of.resize(static_cast<std::size_t>(a.rows));
  copy_to_host(groups.of.data(), next.data(), bytes, stream);

  groups.first.assign(static_cast<std::size_t>(count) + 1, 0);
  for (const Pair pair : neighbours(a, input.rows().nnz, next, count, stream)) {
    groups.neighbour.push_back(static_cast<std::int32_t>(pair & 0xffffffffu));
    ++groups.first[static_cast<std::size_t>(pair >> 32) + 1];
  }
  for (std::size_t g = 1; g < groups.first.size(); ++g) groups.first[g] += groups.first[g - 1];
  return groups;
}

/// A table of different columns with open addressing, in shared memory: 62 KB, which every GPU has.
constexpr int kTable = 15872;
static_assert(kTable > kTiledMostColumns + kTileBlock && kTable * sizeof(std::int32_t) + 64 <= 65536);

/// Fills the table with the columns of a tile; returns their number, or more than kTiledMostColumns.
__device__ int collect_columns(const Matrix& a, const std::int32_t* __restrict__ order, std::int64_t begin, std::int64_t end,
                               std::int32_t* table, int& count) {
  for (int i = static_cast<int>(threadIdx.x); i < kTable; i += kTileBlock) table[i] = -1;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % kLanesOfRow;
  for (std::int64_t i = begin + threadIdx.x / kLanesOfRow; i < end; i += kTileBlock / kLanesOfRow) {
    const std::int64_t row = order[i], last = a.begin(row + 1);
    for (std::int64_t k = a.begin(row) + lane; k < last; k += kLanesOfRow) {
      // Each thread adds one more at most before it sees that there are too many, so that there is always a place.
      if (*static_cast<volatile int*>(&count) > kTiledMostColumns) break;
      const std::int32_t column = a.col_idx[k];
      auto place = static_cast<int>(__umulhi(static_cast<std::uint32_t>(column) * 0x9e3779b9u, kTable));
      while (true) {
        std::int32_t found = *static_cast<volatile std::int32_t*>(table + place);
        if (found == -1) found = atomicCAS(table + place, -1, column);
        if (found == -1) atomicAdd(&count, 1);
        if (found == -1 || found == column) break;
        place = place + 1 < kTable ? place + 1 : 0;
      }
    }
  }
  __syncthreads();
  return count;
}

__global__ void __launch_bounds__(kTileBlock)
    count_tiles(Matrix a, const std::int32_t* __restrict__ order, const std::int64_t* __restrict__ first,
                std::int32_t* __restrict__ counts) {
  extern __shared__ std::int32_t table[];
  __shared__ int count;
  const int columns = collect_columns(a, order, first[blockIdx.x], first[blockIdx.x + 1], table, count);
  if (threadIdx.x == 0) counts[blockIdx.x] = min(columns, static_cast<int>(kTiledMostColumns) + 1);
}

/// Writes the columns of a tile ascending: each has as many before it as are smaller.
__global__ void __launch_bounds__(kTileBlock)
    write_tiles(Matrix a, const std::int32_t* __restrict__ order, const std::int64_t* __restrict__ first,
                const TiledTile* __restrict__ tiles, std::int32_t* __restrict__ columns) {
  constexpr int kOfThread = (kTable + kTileBlock - 1) / kTileBlock, kAtOnce = 4;
  extern __shared__ std::int32_t table[];
  __shared__ int count;
  collect_columns(a, order, first[blockIdx.x], first[blockIdx.x + 1], table, count);
  std::int32_t mine[kOfThread];
#pragma unroll
  for (int u = 0; u < kOfThread; ++u) {
    const int i = static_cast<int>(threadIdx.x) + u * kTileBlock;
    mine[u] = i < kTable ? table[i] : -1;
  }
  __syncthreads();
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
#pragma unroll
  for (int u = 0; u < kOfThread; ++u)
    if (mine[u] >= 0) table[atomicAdd(&count, 1)] = mine[u];
  __syncthreads();
  const int n = count;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += kAtOnce * kTileBlock) {
    std::int32_t column[kAtOnce];
    int smaller[kAtOnce] = {};
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) column[u] = i + u * kTileBlock < n ? table[i + u * kTileBlock] : -1;
    for (int j = 0; j < n; ++j) {
      const std::int32_t other = table[j];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) smaller[u] += other < column[u];
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (column[u] >= 0) columns[std::int64_t{tiles[blockIdx.x].column} + smaller[u]] = column[u];
  }
}

/// The tiles on the device.
struct DeviceTiles {
  Buffer order, first;
  DeviceTiles(const RowTiles& tiles, Stream& stream)
      : order(upload<std::int32_t>(tiles.order, stream)), first(upload(tiles.first, stream)) {}
};

std::vector<std::int32_t> count_columns(ConversionInput& input, const RowTiles& tiles) {
  Stream& stream = input.stream();
  const DeviceTiles on_device(tiles, stream);
  const Buffer counts(stream.device(), static_cast<std::size_t>(tiles.count()) * sizeof(std::int32_t));
  cuda::allow_shared_memory(count_tiles, kTable * sizeof(std::int32_t), stream.device());
  cuda::launch_blocks(count_tiles, tiles.count(), kTileBlock, kTable * sizeof(std::int32_t), stream, matrix_of(input),
                      on_device.order.as<std::int32_t>(), on_device.first.as<std::int64_t>(), counts.as<std::int32_t>());
  std::vector<std::int32_t> result = download<std::int32_t>(counts, stream);
  stream.synchronize();
  return result;
}

void write_columns(ConversionInput& input, const RowTiles& tiles, TiledPattern& p) {
  Stream& stream = input.stream();
  const DeviceTiles on_device(tiles, stream);
  const Buffer places = upload(p.tiles, stream);
  cuda::allow_shared_memory(write_tiles, kTable * sizeof(std::int32_t), stream.device());
  cuda::launch_blocks(write_tiles, tiles.count(), kTileBlock, kTable * sizeof(std::int32_t), stream, matrix_of(input),
                      on_device.order.as<std::int32_t>(), on_device.first.as<std::int64_t>(), places.as<TiledTile>(),
                      p.columns.as<std::int32_t>());
  stream.synchronize();
}

/// What fill_tiles() reads and writes.
template <class T>
struct Places {
  const TiledTile* __restrict__ tiles;
  const TiledStream* __restrict__ streams;
  const TiledSlice* __restrict__ slices;
  const std::int32_t* __restrict__ rows;
  const std::int32_t* __restrict__ columns;
  int W, V;
  const T* __restrict__ csr_values;
  std::uint16_t* __restrict__ local;  ///< null: only values
  T* __restrict__ values;
};

/// A thread block a tile: copies values out of CSR, and finds the places of columns among those of the tile.
template <class T>
__global__ void fill_tiles(Matrix a, Places<T> p) {
  const TiledTile tile = p.tiles[blockIdx.x];
  const std::int32_t* columns = p.columns + tile.column;
  const int lane = static_cast<int>(threadIdx.x) % kTiledLanes;
  const auto write = [&](std::uint64_t position, std::uint32_t slice, std::uint32_t slot) {
    const std::int32_t row = p.rows[std::int64_t{slice} * kTiledLanes + lane];
    const std::int64_t entry = row < 0 ? -1 : tiled_entry(a.length(row), p.slices[slice].lanes, lane, slot);
    const std::int64_t k = entry < 0 ? -1 : a.begin(row) + entry;
    const std::uint64_t to = position + static_cast<std::uint64_t>(lane * p.V);
    p.values[to] = k < 0 ? T(0) : p.csr_values[k];
    if (p.local == nullptr) return;
    const std::int32_t column = k < 0 ? 0 : a.col_idx[k];
    std::uint32_t low = k < 0 ? tile.columns : 0, high = tile.columns;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (columns[middle] < column) low = middle + 1;
      else high = middle;
    }
    p.local[to] = static_cast<std::uint16_t>(low);
  };
  for (int w = static_cast<int>(threadIdx.x) / kTiledLanes; w < p.W; w += static_cast<int>(blockDim.x) / kTiledLanes)
    walk_stream(tile, p.streams[std::int64_t{blockIdx.x} * p.W + w], p.slices, w, p.W, p.V, write);
}

void fill(TiledStorage& a, ConversionInput& input, bool structure) {
  const TiledPattern& p = *a.pattern;
  dispatch(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cuda::launch_blocks(
        fill_tiles<T>, std::ssize(p.tiles), kTileBlock, 0, input.stream(), matrix_of(input),
        Places<T>{a.tiles.as<TiledTile>(), a.streams.as<TiledStream>(), a.slices.as<TiledSlice>(), a.rows.as<std::int32_t>(),
                  p.columns.as<std::int32_t>(), p.warps, p.bundle, input.csr()->values.as<T>(),
                  structure ? a.local.as<std::uint16_t>() : nullptr, a.values.as<T>()});
  });
  input.stream().synchronize();
}

}  // namespace

const Builder cuda_builder{group, count_columns, write_columns, fill};

}  // namespace shardmat::tiled
