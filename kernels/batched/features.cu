// Graph convolutions on tensor cores. A warp takes 16 rows at a time: it adds up their rows of A·X in registers, several
// rows and entries at once so that few loads wait for others, leaves them in shared memory, and multiplies them there with
// W, of which every block keeps a copy in the order in which the tensor cores want it. f32 factors are split into two TF32
// numbers each, and of the four products all but the least are added up (S. Markidis et al., "NVIDIA tensor core
// programmability, performance & precision", IPDPSW 2018, section V). Tensor cores truncate their sums, so each has eight
// terms only, and these sums are added up outside of them (H. Ootomo and R. Yokota, "Recovering single precision accuracy
// from tensor cores", IJHPCA 2022).
#include <algorithm>

#include "kernels/batched/features_plans.h"
#include "kernels/batched/operands.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

using namespace batched;

constexpr int kWarp = 32, kRows = 16, kTile = 8;  ///< kRows, kTile: rows of a product on tensor cores, its columns or terms
constexpr int kLeastFeatures = 16;
constexpr int kEntries = 128;  ///< of a warp's rows that come into shared memory at once
constexpr int kDeep = 4;       ///< entries of a row that are loaded at once
constexpr int kAhead = 2;      ///< rows of a sub-warp for which that is done
constexpr int kMostWarps = 8, kBlocksPerSm = 2;
constexpr int kFewWarps = 4;  ///< that a block has at least, or else it takes fewer columns of W

struct Csr {
  std::int32_t rows;
  const std::int32_t *row_ptr, *shift, *col_idx;
  const float* values;
};
struct Weights {
  const float* w;
  std::int64_t ldw;
  int in, out;
};

/// An entry of A: its column and the bits of its value.
using Entry = int2;
/// Two columns of W for a thread, as the two numbers that add up to each.
using Split = float4;

/// Shared memory of a block: tiles of W, and for each warp its rows of A·X and entries of A.
struct Layout {
  int features = kLeastFeatures;  ///< columns of A·X with those that pad them
  int tiles = 1;                  ///< of W's columns, likewise

  /// Of rows of A·X, which so begin in other banks.
  __host__ __device__ constexpr int leading() const { return features + 4; }
  __host__ __device__ constexpr int splits() const { return features / kTile * tiles * kWarp; }
  __host__ __device__ constexpr std::size_t of_warp() const {
    return static_cast<std::size_t>(kRows * leading()) * sizeof(float) + kEntries * sizeof(Entry);
  }
  __host__ __device__ constexpr std::size_t bytes(int warps) const {
    return static_cast<std::size_t>(splits()) * sizeof(Split) + static_cast<std::size_t>(warps) * of_warp();
  }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define SHARDMAT_TF32 1
#endif

__device__ inline unsigned tf32(float v) {
  unsigned rounded = 0;
#ifdef SHARDMAT_TF32
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(v));
#endif
  return rounded;
}
__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], float b0, float b1) {
#ifdef SHARDMAT_TF32
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
#endif
}

/// Tile (k, n) of W from column `first_column` on as lanes hold it, for all tiles of the block; what pads W is zero.
__device__ void split_weights(const Weights& of, int first_column, const Layout& layout, Split* to) {
  const auto at = [&](int k, int n) { return k < of.in && n < of.out ? of.w[k * of.ldw + n] : 0.0f; };
  for (int i = static_cast<int>(threadIdx.x); i < layout.splits(); i += static_cast<int>(blockDim.x)) {
    const int lane = i % kWarp, k = i / kWarp / layout.tiles * kTile + lane % 4,
              n = first_column + i / kWarp % layout.tiles * kTile + lane / 4;
    const float first = at(k, n), second = at(k + 4, n);
    const float high = __uint_as_float(tf32(first)), high_second = __uint_as_float(tf32(second));
    to[i] = {high, high_second, __uint_as_float(tf32(first - high)), __uint_as_float(tf32(second - high_second))};
  }
}

/// Four columns of a row of X from `column` on.
template <bool kWide>
__device__ float4 load_features(const float* row, int column, int in) {
  if constexpr (kWide) return column < in ? *reinterpret_cast<const float4*>(row + column) : float4{0, 0, 0, 0};
  const auto at = [&](int j) { return column + j < in ? row[column + j] : 0.0f; };
  return {at(0), at(1), at(2), at(3)};
}
__device__ inline void add(float4& sum, float value, const float4& x) {
  sum.x += value * x.x, sum.y += value * x.y, sum.z += value * x.z, sum.w += value * x.w;
}

/// Rows first … first + 15 of A·X into `to`, by a warp. Lane l holds the beginning of row first + l among the entries, for l
/// = 16 the end of the last, and where in X the columns of its matrix begin.
template <int K, bool kWide>
__device__ void add_up_features(const Csr& a, std::int32_t begin, std::int32_t shift, const Operands<float, float>& v,
                                int in, int lane, float* to, Entry* entries) {
  constexpr int kLanes = K / 4, kAtOnce = kWarp / kLanes, kSteps = kRows / kAtOnce,
                kGroup = kSteps < kAhead ? kSteps : kAhead;
  const std::int32_t of_first = __shfl_sync(~0u, begin, 0), of_last = __shfl_sync(~0u, begin, kRows);
#pragma unroll
  for (int i = lane; i < kEntries; i += kWarp)
    if (of_first + i < of_last) entries[i] = {a.col_idx[of_first + i], __float_as_int(a.values[of_first + i])};
  __syncwarp();
  const auto entry = [&](std::int32_t k) {
    return k - of_first < kEntries ? entries[k - of_first] : Entry{a.col_idx[k], __float_as_int(a.values[k])};
  };
  const int column = lane % kLanes * 4;
#pragma unroll
  for (int step = 0; step < kSteps; step += kGroup) {
    std::int32_t from[kGroup], end[kGroup];
    const float* x[kGroup];
    float value[kGroup][kDeep];
    float4 row_of_x[kGroup][kDeep];
#pragma unroll
    for (int q = 0; q < kGroup; ++q) {
      const int row = (step + q) * kAtOnce + lane / kLanes;
      from[q] = __shfl_sync(~0u, begin, row), end[q] = __shfl_sync(~0u, begin, row + 1);
      x[q] = v.x + __shfl_sync(~0u, shift, row) * v.ldx;
#pragma unroll
      for (int d = 0; d < kDeep; ++d) {
        value[q][d] = 0, row_of_x[q][d] = {0, 0, 0, 0};
        if (from[q] + d >= end[q]) continue;
        const Entry one = entry(from[q] + d);
        value[q][d] = __int_as_float(one.y);
        row_of_x[q][d] = load_features<kWide>(x[q] + one.x * v.ldx, column, in);
      }
    }
#pragma unroll
    for (int q = 0; q < kGroup; ++q) {
      float4 sum = {0, 0, 0, 0};
#pragma unroll
      for (int d = 0; d < kDeep; ++d) add(sum, value[q][d], row_of_x[q][d]);
      for (std::int32_t k = from[q] + kDeep; k < end[q]; ++k) {
        const Entry one = entry(k);
        add(sum, __int_as_float(one.y), load_features<kWide>(x[q] + one.x * v.ldx, column, in));
      }
      *reinterpret_cast<float4*>(to + ((step + q) * kAtOnce + lane / kLanes) * Layout{K}.leading() + column) = sum;
    }
  }
}

/// Columns column and column + 1 of a row of Y. `pairs`: they can be stored together.
__device__ void store_pair(const Operands<float, float>& v, bool pairs, std::int64_t row, int column, float first,
                           float second) {
  if (column >= v.columns) return;
  float* const y = v.y + row * v.ldy + column;
  const bool adds = v.beta != 0;
  const auto finish = [&](float sum, float old, int j) { return finished(v, sum, old, column + j); };
  if (pairs) {
    const float2 old = adds ? *reinterpret_cast<const float2*>(y) : float2{0, 0};
    *reinterpret_cast<float2*>(y) = {finish(first, old.x, 0), finish(second, old.y, 1)};
  } else {
    y[0] = finish(first, adds ? y[0] : 0, 0);
    if (column + 1 < v.columns) y[1] = finish(second, adds ? y[1] : 0, 1);
  }
}

/// K: columns of A·X with those that pad them; N: tiles of W's columns that a warp has sums of at once, of the block's
/// `tiles`. kWide: rows of X begin and end at multiples of 16 bytes.
template <int K, int N, bool kWide>
__global__ void __launch_bounds__(kMostWarps* kWarp, kBlocksPerSm)
    features_product(const Csr a, const Weights weights, int tiles, bool pairs, const Operands<float, float> v) {
  extern __shared__ __align__(16) unsigned char shared[];
  cuda::after_previous();
  const Layout layout{K, tiles};
  constexpr int kLeading = Layout{K}.leading();
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp,
            warps = static_cast<int>(blockDim.x) / kWarp;
  const int first_column = static_cast<int>(blockIdx.y) * tiles * kTile;
  auto* const w = reinterpret_cast<Split*>(shared);
  split_weights(weights, first_column, layout, w);
  auto* const features = reinterpret_cast<float*>(shared + layout.bytes(warp));
  auto* const entries = reinterpret_cast<Entry*>(features + kRows * kLeading);
  __syncthreads();
  const int group = lane / 4, member = lane % 4;  // as the tensor cores' operands are laid out
  const std::int64_t rows = a.rows, step = static_cast<std::int64_t>(gridDim.x) * warps * kRows;
  for (std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * warps + warp) * kRows; first < rows; first += step) {
    const std::int32_t begin = a.row_ptr[min(first + min(lane, kRows), rows)],
                       shift = a.shift[min(first + min(lane, kRows - 1), rows - 1)];
    add_up_features<K, kWide>(a, begin, shift, v, weights.in, lane, features, entries);
    __syncwarp();
    for (int tile = 0; tile < tiles; tile += N) {
      float sum[N][4] = {};
#pragma unroll 1
      for (int k = 0; k < K / kTile; ++k) {
        const float* const of = features + group * kLeading + k * kTile + member;
        const float factor[4] = {of[0], of[8 * kLeading], of[4], of[8 * kLeading + 4]};
        unsigned high[4], low[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) high[i] = tf32(factor[i]), low[i] = tf32(factor[i] - __uint_as_float(high[i]));
#pragma unroll
        for (int n = 0; n < N; ++n) {
          const Split b = w[(k * tiles + tile + n) * kWarp + lane];
          float part[4] = {};
          multiply_add(part, low, b.x, b.y);
          multiply_add(part, high, b.z, b.w);
          multiply_add(part, high, b.x, b.y);
#pragma unroll
          for (int i = 0; i < 4; ++i) sum[n][i] += part[i];
        }
      }
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          if (const std::int64_t row = first + group + 8 * half; row < rows)
            store_pair(v, pairs, row, first_column + (tile + n) * kTile + 2 * member, sum[n][2 * half],
                       sum[n][2 * half + 1]);
    }
    __syncwarp();
  }
}

using Product = void (*)(Csr, Weights, int, bool, Operands<float, float>);

template <int K>
Product product_of(int at_once, bool wide) {
  if (at_once == 4) return wide ? features_product<K, 4, true> : features_product<K, 4, false>;
  return wide ? features_product<K, 8, true> : features_product<K, 8, false>;
}
Product product_of(int features, int at_once, bool wide) {
  switch (features) {
    case 16:
      return product_of<16>(at_once, wide);
    case 32:
      return product_of<32>(at_once, wide);
    case 64:
      return product_of<64>(at_once, wide);
    default:
      return product_of<128>(at_once, wide);
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
    const auto tiles = static_cast<int>((out + kTile - 1) / kTile);
    const int at_once = tiles <= 4 ? 4 : 8;
    while (layout_.features < in) layout_.features *= 2;
    layout_.tiles = (tiles + at_once - 1) / at_once * at_once;
    const std::size_t most = cuda::most_shared_memory(device);
    if (layout_.bytes(kFewWarps) > most) across_ = layout_.tiles / at_once, layout_.tiles = at_once;
    while (warps_ > 1 && layout_.bytes(warps_) > most) warps_ /= 2;
    for (const bool wide : {false, true}) {
      product_[wide] = product_of(layout_.features, at_once, wide);
      require_tensor_cores(product_[wide]);
      cuda::allow_shared_memory(product_[wide], layout_.bytes(warps_));
    }
    int of_one = 0;
    SHARDMAT_CUDA_CHECK(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_one, product_[true], warps_ * kWarp, layout_.bytes(warps_)));
    blocks_ = std::max(1, of_one * cuda::multiprocessors(device) / across_);
  }

 private:
  void run(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
           const Epilogue& epilogue, Stream& stream) const override {
    const auto at_multiple = [](const void* p, std::size_t of) { return reinterpret_cast<std::uintptr_t>(p) % of == 0; };
    const bool wide = at_multiple(x, 16) && ldx % 4 == 0 && in() % 4 == 0,
               pairs = at_multiple(y, 8) && ldy % 2 == 0 && out() % 2 == 0;
    const auto rows = static_cast<std::int32_t>(batch().at.rows());
    const std::int64_t rows_of_block = std::int64_t{warps_} * kRows;
    cuda::launch_grid_early(
        product_[wide], std::min<std::int64_t>((rows + rows_of_block - 1) / rows_of_block, blocks_), across_,
        dim3(static_cast<unsigned>(warps_ * kWarp)), layout_.bytes(warps_), stream,
        Csr{rows, batch().row_ptr, shifts_.of(work()), batch().col_idx, static_cast<const float*>(batch().values)},
        Weights{static_cast<const float*>(w), ldw, static_cast<int>(in()), static_cast<int>(out())}, layout_.tiles, pairs,
        operands<float, float>(out(), x, ldx, y, ldy, epilogue));
  }

  Layout layout_;
  Product product_[2] = {};  ///< whose loads of X are narrow, and wide
  int warps_ = kMostWarps;
  int across_ = 1;  ///< blocks that share out W's columns
  int blocks_ = 1;  ///< that the device holds at once, for each of these
};

}  // namespace

std::unique_ptr<FeaturePlan> make_features_cuda(std::shared_ptr<const DeviceBatch> batch, std::int64_t in,
                                                std::int64_t out) {
  return std::make_unique<FeaturesCuda>(std::move(batch), in, out);
}

}  // namespace shardmat
