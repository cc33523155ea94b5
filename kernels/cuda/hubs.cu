#include "kernels/cuda/hubs.h"

#include <vector>

#include "kernels/cuda/launch.h"

namespace shardmat::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kCountBins = 1 << 16;

__global__ void count_columns(std::int64_t nnz, const std::int32_t* __restrict__ col_idx,
                              std::int32_t* __restrict__ counts) {
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < nnz) atomicAdd(counts + col_idx[k], 1);
}

/// bins[c] = columns with c ≥ 2 nonzeros; the last bin has all with more.
__global__ void count_counts(std::int64_t cols, const std::int32_t* __restrict__ counts, std::int32_t* __restrict__ bins) {
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j < cols && counts[j] >= 2) atomicAdd(bins + min(counts[j], kCountBins - 1), 1);
}

/// Gives each column with at least `fewest` nonzeros a place; counts[j] becomes its complement, or j for other columns.
__global__ void place_hubs(std::int64_t cols, int fewest, std::int32_t* __restrict__ counts,
                           std::int32_t* __restrict__ hub_columns, std::int32_t* __restrict__ places) {
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= cols) return;
  const auto column = static_cast<std::int32_t>(j);
  std::int32_t code = column;
  if (counts[j] >= fewest) {
    const int place = atomicAdd(places, 1);  // in any order: the place of a value does not change a sum
    hub_columns[place] = column;
    code = ~place;
  }
  counts[j] = code;
}

__global__ void code_columns(std::int64_t nnz, const std::int32_t* __restrict__ col_idx,
                             const std::int32_t* __restrict__ codes, std::int32_t* __restrict__ coded) {
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < nnz) coded[k] = codes[col_idx[k]];
}

}  // namespace

Hubs find_hubs(const CsrStorage& a, std::size_t most, Stream& stream) {
  const auto ints = [&](std::int64_t count) {
    return Buffer(a.device, static_cast<std::size_t>(count) * sizeof(std::int32_t));
  };
  const Buffer counts = ints(a.cols), bins = ints(kCountBins), placed = ints(1);
  for (const Buffer* zero : {&counts, &bins, &placed}) fill_bytes(zero->data(), 0, zero->bytes(), stream);
  launch(count_columns, a.nnz, kBlock, stream, a.nnz, a.col_idx.as<std::int32_t>(), counts.as<std::int32_t>());
  launch(count_counts, a.cols, kBlock, stream, a.cols, counts.as<std::int32_t>(), bins.as<std::int32_t>());
  std::vector<std::int32_t> of_count(kCountBins);
  copy_to_host(of_count.data(), bins.data(), bins.bytes(), stream);
  int fewest = kCountBins;
  std::size_t columns = 0;
  while (fewest > 2 && columns + static_cast<std::size_t>(of_count[static_cast<std::size_t>(fewest) - 1]) <= most)
    columns += static_cast<std::size_t>(of_count[static_cast<std::size_t>(--fewest)]);
  Hubs hubs;
  hubs.count = static_cast<int>(columns);
  if (hubs.count == 0) return hubs;
  hubs.columns = ints(hubs.count);
  hubs.coded = ints(a.nnz);
  launch(place_hubs, a.cols, kBlock, stream, a.cols, fewest, counts.as<std::int32_t>(), hubs.columns.as<std::int32_t>(),
         placed.as<std::int32_t>());
  launch(code_columns, a.nnz, kBlock, stream, a.nnz, a.col_idx.as<std::int32_t>(), counts.as<std::int32_t>(),
         hubs.coded.as<std::int32_t>());
  stream.synchronize();
  return hubs;
}

}  // namespace shardmat::cuda
