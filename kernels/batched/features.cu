// Graph convolutions on tensor cores. A warp takes 16 rows at a time and 16 columns of X: each lane adds up four columns of
// A·X for two of the rows, just where the tensor cores want them of it (their terms may come in any order, if the rows of W
// come in the same), multiplies them with W, and has asked for the next before. Every block keeps a copy of W, laid out the
// same way. f32 factors are split into two TF32 numbers each, and of the four products all but the least are added up
// (S. Markidis et al., "NVIDIA tensor core programmability, performance & precision", IPDPSW 2018, section V). Tensor cores
// truncate their sums, so each has 16 terms only, and these sums are added up outside of them (H. Ootomo and R. Yokota,
// "Recovering single precision accuracy from tensor cores", IJHPCA 2022).
#include <algorithm>

#include "kernels/batched/features_plans.h"
#include "kernels/batched/operands.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

using namespace batched;

constexpr int kWarp = 32;
constexpr int kTile = 8;      ///< columns of a product on tensor cores, and its terms
constexpr int kRows = 16;     ///< of such a product, and of a warp
constexpr int kColumns = 16;  ///< of A·X that a warp adds up at once
constexpr int kOwn = 2;       ///< rows of a lane
constexpr int kDeep = 4;      ///< entries of a row whose rows of X are asked for early
constexpr int kTogether = 4;  ///< tiles of sums that are worked on in turn, so that they do not wait for each other
constexpr int kMostTiles = 16;

/// Of a block that has sums of so many tiles of columns, and blocks that registers allow a multiprocessor.
constexpr int warps_of(int tiles) { return tiles == kMostTiles ? 12 : 8; }
constexpr int blocks_per_sm(int tiles) { return tiles == kMostTiles ? 1 : 2; }

struct Csr {
  std::int32_t rows;
  const std::int32_t *row_ptr, *shift, *col_idx;
  const float* values;
};
struct Weights {
  const float* w;
  std::int64_t ldw;
  int in, out;
  int steps;  ///< of kColumns rows, the last perhaps of fewer
};

/// Two entries of W for a lane, as the two numbers that add up to each.
using Split = float4;

constexpr int steps_of(std::int64_t in) { return static_cast<int>((in + kColumns - 1) / kColumns); }
/// Of a block's columns of W in shared memory.
constexpr std::size_t bytes_of_weights(std::int64_t in, int tiles) {
  return static_cast<std::size_t>(steps_of(in)) * (kColumns / kTile) * static_cast<std::size_t>(tiles * kWarp) *
         sizeof(Split);
}

/// The tensor cores ignore the bits that are not TF32's. The nearest such number; of a NaN perhaps another number, what is
/// left then is NaN.
__device__ inline float rounded_tf32(float v) { return __uint_as_float((__float_as_uint(v) + 0x1000) & 0xffffe000); }

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define SHARDMAT_TF32 1
#endif

/// sum = before + a·b; a: 16 × 8 in TF32, b: 8 × 8. Nothing where the GPU is older than that.
__device__ inline void multiply_add(float (&sum)[4], const float (&a)[4], float b0, float b1, const float (&before)[4]) {
#ifdef SHARDMAT_TF32
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, "
      "%13};"
      : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)), "f"(before[0]), "f"(before[1]), "f"(before[2]), "f"(before[3]));
#endif
}

/// W from column `first_column` on as lanes take it, by all threads of the block; what pads it is zero. Products 2c and
/// 2c + 1 have rows 16c … 16c + 15 of W for terms: member m of a group of four lanes has 4m, 4m + 1 in the first and 4m + 2,
/// 4m + 3 in the second, so that it adds up four columns of A·X that lie side by side. Columns likewise.
template <int N>
__device__ void split_weights(const Weights& of, int first_column, Split* to) {
  const auto at = [&](int k, int n) { return k < of.in && n < of.out ? of.w[k * of.ldw + n] : 0.0f; };
  const int splits = of.steps * (kColumns / kTile) * N * kWarp;
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x); i < splits; i += static_cast<int>(blockDim.x)) {
    const int lane = i % kWarp, tile = i / kWarp % N, step = i / kWarp / N;
    const int member = lane % 4, group = lane / 4;
    const int k = step / 2 * kColumns + member * 4 + step % 2 * 2,
              n = first_column + tile / 2 * 2 * kTile + group / 2 * 4 + tile % 2 * 2 + group % 2;
    const float first = at(k, n), second = at(k + 1, n);
    const float high = rounded_tf32(first), high_second = rounded_tf32(second);
    to[i] = {high, high_second, first - high, second - high_second};
  }
}

__device__ inline void add(float4& sum, float value, const float4& x) {
  sum.x += value * x.x, sum.y += value * x.y, sum.z += value * x.z, sum.w += value * x.w;
}

/// A lane's rows: where their entries begin and end, and where in X the columns of their matrices begin.
struct Rows {
  std::int32_t begin[kOwn], end[kOwn], shift[kOwn];

  __device__ Rows(const Csr& a, std::uint32_t tile, unsigned group) {
#pragma unroll
    for (int h = 0; h < kOwn; ++h) {
      const std::uint32_t row = tile * kRows + h * kTile + group;
      begin[h] = end[h] = shift[h] = 0;
      if (row < static_cast<std::uint32_t>(a.rows))
        begin[h] = a.row_ptr[row], end[h] = a.row_ptr[row + 1], shift[h] = a.shift[row];
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

/// Where a lane finds X: up to four columns, of which `left_` are there.
class Place {
 public:
  __device__ Place(const Operands<float, float>& v, std::int32_t row_bytes, int in, int column)
      : x_(v.x + column), row_bytes_(row_bytes), left_(in - column) {}

  /// Of a row, if `there`; else zero. Whole lines and the next come into the L2 cache, for the columns that follow.
  template <bool kWide>
  __device__ float4 row(std::int32_t at, bool there) const {
    float4 v{0, 0, 0, 0};
    if constexpr (kWide) {
      read_ahead(at, there && left_ > 0, v);
    } else if (there) {
      const auto* const from = reinterpret_cast<const float*>(reinterpret_cast<const unsigned char*>(x_) +
                                                              static_cast<std::int64_t>(at) * row_bytes_);
      if (left_ > 0) v.x = from[0];
      if (left_ > 1) v.y = from[1];
      if (left_ > 2) v.z = from[2];
      if (left_ > 3) v.w = from[3];
    }
    return v;
  }

 private:
  /// Nothing where the GPU has no tensor cores for TF32.
  __device__ void read_ahead(std::int32_t at, bool there, float4& v) const {
#ifdef SHARDMAT_TF32
    asm volatile(
        "{\n"
        "  .reg .pred there;\n"
        "  .reg .b64 p;\n"
        "  setp.ne.s32 there, %7, 0;\n"
        "  mad.wide.s32 p, %5, %6, %4;\n"
        "  @there ld.global.L2::256B.v4.f32 {%0, %1, %2, %3}, [p];\n"
        "}"
        : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)
        : "l"(x_), "r"(at), "r"(row_bytes_), "r"(static_cast<int>(there)));
#endif
  }

  const float* x_;
  std::int32_t row_bytes_;
  int left_;
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

/// Adds the product of 16 columns of A·X with their rows of W. `w`: the lane's of these.
template <int N>
__device__ void multiply_add(const float4 (&features)[kOwn], const Split* w, float (&sum)[N][4]) {
  const float factor[2][4] = {{features[0].x, features[1].x, features[0].y, features[1].y},
                              {features[0].z, features[1].z, features[0].w, features[1].w}};
  float high[2][4], low[2][4];
#pragma unroll
  for (int p = 0; p < 2; ++p)
#pragma unroll
    for (int i = 0; i < 4; ++i) high[p][i] = rounded_tf32(factor[p][i]), low[p][i] = factor[p][i] - high[p][i];
  constexpr int kAtOnce = N < kTogether ? N : kTogether;
#pragma unroll
  for (int first = 0; first < N; first += kAtOnce) {
    float part[kAtOnce][4];
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      Split b[kAtOnce];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) b[n] = w[(p * N + first + n) * kWarp];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
        if (p == 0) multiply_add(part[n], low[p], b[n].x, b[n].y, {0, 0, 0, 0});
        else multiply_add(part[n], low[p], b[n].x, b[n].y, part[n]);
      }
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) multiply_add(part[n], high[p], b[n].z, b[n].w, part[n]);
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) multiply_add(part[n], high[p], b[n].x, b[n].y, part[n]);
    }
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[first + n][i] += part[n][i];
  }
}

/// How rows of Y are stored.
enum class Stores { plain, wide, narrow };  ///< four sums as they are; four, finished; one by one

/// Four columns of a row of Y.
__device__ inline void store_features(const Operands<float, float>& v, Stores how, float* y, int column,
                                      const float (&sum)[4]) {
  if (column >= v.columns) return;
  if (how == Stores::plain) {
    *reinterpret_cast<float4*>(y + column) = {sum[0], sum[1], sum[2], sum[3]};
  } else if (how == Stores::wide) {
    store<false>(v, y + column, column, sum);
  } else {
#pragma unroll
    for (int j = column; j < column + 4; ++j)
      if (j < v.columns) y[j] = finished(v, sum[j - column], v.beta != 0 ? y[j] : 0, j);
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

/// Throws Error(usage) if the device, or the code for it, is older than TF32 on tensor cores.
void require_tensor_cores(Product product) {
  cudaFuncAttributes attributes{};
  SHARDMAT_CUDA_CHECK(cudaFuncGetAttributes(&attributes, product));
  if (attributes.ptxVersion < 80)
    throw Error(ErrorKind::usage, "feature products need a GPU of compute capability 8.0 or later and a build for it");
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
    const auto whole = [](const void* p, std::int64_t leading, std::int64_t columns) {
      return reinterpret_cast<std::uintptr_t>(p) % sizeof(float4) == 0 && leading % 4 == 0 && columns % 4 == 0;
    };
    const auto v = operands<float, float>(out(), x, ldx, y, ldy, epilogue);
    const Stores how = !whole(y, ldy, out()) ? Stores::narrow : v.plain() ? Stores::plain : Stores::wide;
    cuda::launch_grid_early(
        product_[whole(x, ldx, in())], blocks_, across(tiles_), dim3(static_cast<unsigned>(warps_of(tiles_) * kWarp)),
        bytes_of_weights(in(), tiles_), stream,
        Csr{static_cast<std::int32_t>(batch().at.rows()), batch().row_ptr, shifts_.of(work()), batch().col_idx,
            static_cast<const float*>(batch().values)},
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
    require_tensor_cores(product);
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
