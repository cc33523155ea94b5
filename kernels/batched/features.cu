// Graph convolutions on tensor cores. A warp takes 16 rows at a time and 16 columns of X: each lane adds up four columns of
// A·X for two of the rows, just where the tensor cores want them of it (their terms may come in any order, if the rows of W
// come in the same), multiplies them with W, and has asked for the next before. Every block keeps a copy of W, laid out the
// same way.
#include <algorithm>

#include "kernels/batched/features_plans.h"
#include "kernels/batched/features_tensor.h"

namespace shardmat {
namespace {

using namespace batched;

constexpr int kDeep = 4;  ///< entries of a row whose rows of X are asked for early
constexpr int kMostTiles = 16;

/// Of a block that has sums of so many tiles of columns, and blocks that registers allow a multiprocessor.
constexpr int warps_of(int tiles) { return tiles == kMostTiles ? 12 : 8; }
constexpr int blocks_per_sm(int tiles) { return tiles == kMostTiles ? 1 : 2; }

struct Csr {
  std::int32_t rows;
  const std::int32_t *row_ptr, *col_idx;
  const float* values;
  const std::int32_t* shift;  ///< null if `shifts` need no list
  RowShifts shifts;

  __device__ std::int32_t shift_of(std::uint32_t row) const {
    return shift != nullptr ? shift[row] : shifts.look_up(nullptr, static_cast<std::int32_t>(row));
  }
};
/// A lane's rows: where their entries begin and end, and where in X the columns of their matrices begin.
struct Rows {
  std::int32_t begin[kOwn], end[kOwn], shift[kOwn];

  __device__ Rows(const Csr& a, std::uint32_t tile, unsigned group) {
#pragma unroll
    for (int h = 0; h < kOwn; ++h) {
      const std::uint32_t row = tile * kRows + h * kTile + group;
      begin[h] = end[h] = shift[h] = 0;
      if (row < static_cast<std::uint32_t>(a.rows))
        begin[h] = a.row_ptr[row], end[h] = a.row_ptr[row + 1], shift[h] = a.shift_of(row);
    }
  }
};

/// Of the first four entries of each of these rows the one that has the lane's place in its group.
struct OneEntry {
  std::int32_t column[kOwn];
  float value[kOwn];

  __device__ OneEntry(const Csr& a, const Rows& rows, unsigned member) {
#pragma unroll
    for (int h = 0; h < kOwn; ++h) {
      column[h] = 0, value[h] = 0;
      if (const std::int32_t k = rows.begin[h] + static_cast<int>(member); k < rows.end[h])
        column[h] = a.col_idx[k], value[h] = a.values[k];
    }
  }
};

/// All four, and their rows of X.
struct FirstEntries {
  std::int32_t row_of_x[kOwn][kDeep];
  float value[kOwn][kDeep];

  __device__ FirstEntries(const Rows& rows, const OneEntry& of_lane, unsigned lane) {
#pragma unroll
    for (int h = 0; h < kOwn; ++h)
#pragma unroll
      for (int d = 0; d < kDeep; ++d) {
        const unsigned from = lane - lane % 4 + d;
        row_of_x[h][d] = rows.shift[h] + __shfl_sync(~0u, of_lane.column[h], from);
        value[h][d] = __shfl_sync(~0u, of_lane.value[h], from);
      }
  }
};

/// Begins to bring the rows of X of a lane's entries into the L2 cache.
__device__ inline void bring(const Rows& rows, const OneEntry& entry, unsigned member, const Operands<float, float>& v,
                             std::int32_t row_bytes, int in) {
  constexpr int kLine = 32;  // entries of X
#pragma unroll
  for (int h = 0; h < kOwn; ++h) {
    const auto* const x =
        reinterpret_cast<const unsigned char*>(v.x) + static_cast<std::int64_t>(rows.shift[h] + entry.column[h]) * row_bytes;
    if (rows.begin[h] + static_cast<int>(member) < rows.end[h])
      for (int column = 0; column < in; column += kLine) asm volatile("prefetch.global.L2 [%0];" ::"l"(x + column * 4));
  }
}

/// Rows of X on their way, for the first four entries of each row.
using Asked = float4[kOwn][kDeep];

template <bool kWide>
__device__ void ask(const Place& from, const Rows& rows, const FirstEntries& entries, Asked& x) {
#pragma unroll
  for (int h = 0; h < kOwn; ++h)
#pragma unroll
    for (int d = 0; d < kDeep; ++d) x[h][d] = from.row<kWide>(entries.row_of_x[h][d], rows.begin[h] + d < rows.end[h]);
}

/// Four columns of A·X.
template <bool kWide>
__device__ void add_up(const Csr& a, const Place& from, const Rows& rows, const FirstEntries& entries, const Asked& x,
                       float4 (&sum)[kOwn]) {
#pragma unroll
  for (int h = 0; h < kOwn; ++h) {
    sum[h] = {0, 0, 0, 0};
#pragma unroll
    for (int d = 0; d < kDeep; ++d) add(sum[h], entries.value[h][d], x[h][d]);
#pragma unroll 1
    for (std::int32_t k = rows.begin[h] + kDeep; k < rows.end[h]; ++k)
      add(sum[h], a.values[k], from.row<kWide>(rows.shift[h] + a.col_idx[k], true));
  }
}

/// N: tiles of W's columns that a block takes. kWide: rows of X begin and end at multiples of 16 bytes.
template <int N, bool kWide>
__global__ void __launch_bounds__(warps_of(N) * kWarp, blocks_per_sm(N))
    features_product(const Csr a, const Weights weights, std::int32_t row_bytes, Stores how,
                     const Operands<float, float> v) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto* const w = reinterpret_cast<Split*>(shared);
  const unsigned lane = threadIdx.x % kWarp, group = lane / 4, member = lane % 4;
  const std::uint32_t rows = static_cast<std::uint32_t>(a.rows), warps = blockDim.x / kWarp, stride = gridDim.x * warps;
  const int first_column = static_cast<int>(blockIdx.y * N * kTile + member * 4);
  const auto place = [&](int step) {
    return Place(v, row_bytes, weights.in, step * kColumns + static_cast<int>(member) * 4);
  };
  std::uint32_t tile = blockIdx.x * warps + threadIdx.x / kWarp;

  cuda::after_previous();
  Rows of_a(a, tile, group), next_of_a(a, tile + stride, group);
  FirstEntries entries(of_a, OneEntry(a, of_a, member), lane);
  OneEntry next_entry(a, next_of_a, member);
  Asked x;
  ask<kWide>(place(0), of_a, entries, x);
  split_weights<N>(weights, blockIdx.y * N * kTile, w);
  __syncthreads();
  for (; tile * kRows < rows; tile += stride) {
    float sum[N][4] = {};
#pragma unroll 1
    for (int step = 0; step < weights.steps; ++step) {
      float4 features[kOwn];
      add_up<kWide>(a, place(step), of_a, entries, x, features);
      const bool last = step + 1 == weights.steps;
      if (last) {
        of_a = next_of_a, entries = FirstEntries(of_a, next_entry, lane);
        next_of_a = Rows(a, tile + 2 * stride, group);
      }
      if (step == 0 && !last) bring(next_of_a, next_entry, member, v, row_bytes, weights.in);
      ask<kWide>(place(last ? 0 : step + 1), of_a, entries, x);
      multiply_add(features, w + step * 2 * N * kWarp + lane, sum);
    }
    next_entry = OneEntry(a, next_of_a, member);
#pragma unroll
    for (int h = 0; h < kOwn; ++h) {
      const std::uint32_t row = tile * kRows + h * kTile + group;
      if (row >= rows) continue;
      float* const y = v.y + row * v.ldy;
#pragma unroll
      for (int n = 0; n < N; n += 2)
        store_features(v, how, y, first_column + n * kTile,
                       {sum[n][2 * h], sum[n][2 * h + 1], sum[n + 1][2 * h], sum[n + 1][2 * h + 1]});
    }
  }
}

using Product = void (*)(Csr, Weights, std::int32_t, Stores, Operands<float, float>);

template <int N>
Product product_of(bool wide) {
  return wide ? features_product<N, true> : features_product<N, false>;
}
Product product_of(int tiles, bool wide) {
  switch (tiles) {
    case 2:
      return product_of<2>(wide);
    case 4:
      return product_of<4>(wide);
    case 8:
      return product_of<8>(wide);
    default:
      return product_of<kMostTiles>(wide);
  }
}

class FeaturesCuda final : public FeaturePlan {
 public:
  FeaturesCuda(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out)
      : FeaturePlan(std::move(batch), in, out) {
    const Device device = this->batch().device;
    const DeviceGuard guard(device);
    shifts_ = RowShifts(descriptor_, this->batch().at);
    while (tiles_ < kMostTiles && tiles_ * kTile < out) tiles_ *= 2;
    while (tiles_ > 2 && bytes_of_weights(in, tiles_) > cuda::most_shared_memory(device)) tiles_ /= 2;
    // A small batch is spread over the device by taking fewer columns at once.
    std::int64_t held = blocks_held(tiles_);
    for (int fewer = tiles_ / 2; fewer >= 2; fewer /= 2) {
      const std::int64_t more = blocks_held(fewer);
      if (row_blocks(fewer) * across(fewer) > more) break;
      tiles_ = fewer, held = more;
    }
    blocks_ = std::min(row_blocks(tiles_), std::max<std::int64_t>(1, held / across(tiles_)));
    for (const bool wide : {false, true}) {
      product_[wide] = product_of(tiles_, wide);
      cuda::allow_shared_memory(product_[wide], bytes_of_weights(in, tiles_), device);
    }
  }

 private:
  void run(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
           const Epilogue& epilogue, Stream& stream) const override {
    const auto v = operands<float, float>(out(), x, ldx, y, ldy, epilogue);
    const Stores how = !rows_are_whole(y, ldy, out()) ? Stores::narrow : v.plain() ? Stores::plain : Stores::wide;
    cuda::launch_grid_early(
        product_[rows_are_whole(x, ldx, in())], blocks_, across(tiles_),
        dim3(static_cast<unsigned>(warps_of(tiles_) * kWarp)), bytes_of_weights(in(), tiles_), stream,
        Csr{static_cast<std::int32_t>(batch().at.rows()), batch().row_ptr, batch().col_idx,
            static_cast<const float*>(batch().values), shifts_.one_shape() ? nullptr : shifts_.of(work()), shifts_},
        Weights{static_cast<const float*>(w), ldw, static_cast<int>(in()), static_cast<int>(out()), steps_of(in())},
        bytes_of_row<float>(ldx, "X"), how, v);
  }

  /// Blocks that take all rows if every warp takes some once, and that share out W's columns, so many tiles each.
  std::int64_t row_blocks(int tiles) const {
    const int rows = warps_of(tiles) * kRows;
    return (batch().at.rows() + rows - 1) / rows;
  }
  std::int64_t across(int tiles) const { return (out() + tiles * kTile - 1) / (tiles * kTile); }
  /// Blocks that the device holds at once.
  std::int64_t blocks_held(int tiles) const {
    const Product product = product_of(tiles, true);
    require_tensor_cores(reinterpret_cast<const void*>(product));
    cuda::allow_shared_memory(product, bytes_of_weights(in(), tiles), batch().device);
    int of_one = 0;
    SHARDMAT_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_one, product, warps_of(tiles) * kWarp,
                                                                      bytes_of_weights(in(), tiles)));
    return std::int64_t{of_one} * cuda::multiprocessors(batch().device);
  }

  int tiles_ = 2;            ///< of W's columns that a block takes
  Product product_[2] = {};  ///< whose loads of X are narrow, and wide
  std::int64_t blocks_ = 1;  ///< for each of those across: that the device holds at once
};

}  // namespace

std::unique_ptr<FeaturePlan> make_features_cuda(std::shared_ptr<const DeviceBatch> batch, std::int64_t in,
                                                std::int64_t out) {
  return std::make_unique<FeaturesCuda>(std::move(batch), in, out);
}

}  // namespace shardmat
