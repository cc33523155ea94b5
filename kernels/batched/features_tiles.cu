// Graph convolutions with X·W first and the work divided by rows, not by matrices: for matrices of many rows, or of very
// different sizes. A block takes a tile of rows of X, whatever matrices they belong to, and writes X·W to scratch memory,
// where the L2 cache keeps it. Then it takes a tile of rows of A, waits for the strips of X·W that these rows read, and
// multiplies.
//
// There is no deadlock, even if the GPU does not hold all blocks at once: a block that has waited for long computes what it
// waits for itself. Two blocks then write the same bits.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "kernels/batched/features_plans.h"
#include "kernels/batched/features_tensor.h"
#include "kernels/batched/weights_first.h"

namespace shardmat {
namespace {

using namespace batched;

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int kBlocksPerSm = 2;   ///< blocks of the next product may start before this one is done
constexpr int kMostTiles = 4;     ///< of W's columns that a block takes
constexpr int kEntriesOfRow = 8;  ///< that shared memory has room for
constexpr int kDeep = 4;          ///< entries of a row whose rows of X·W are asked for at once
constexpr int kRowsAtOnce = 2;    ///< of a lane

/// How rows are divided: `count` tiles of X and as many of Y.
struct Tiles {
  int count, x_rows, y_rows, rows, cols;
};

/// Memory that the blocks of some columns of W share. Nothing is reset between products: a strip is there if it has the
/// number of this product. Each block counts the products in a word of its own.
struct Scratch {
  unsigned* products;  ///< that each block has done
  unsigned* done;      ///< of each strip of X·W: the last product for which it was written
  float* product;      ///< X·W
  std::size_t bytes;

  Scratch(void* memory, const Tiles& tiles, int groups, int stride) {
    const auto from = reinterpret_cast<std::uintptr_t>(memory);  // null to ask for `bytes`
    const auto words = [](int n) { return aligned(static_cast<std::size_t>(n) * sizeof(unsigned)); };
    const std::size_t of_done = words(tiles.count),
                      of_product = of_done + words(tiles.count * tiles.x_rows / kRows * groups);
    products = reinterpret_cast<unsigned*>(from), done = reinterpret_cast<unsigned*>(from + of_done);
    product = reinterpret_cast<float*>(from + of_product);
    bytes = of_product + aligned(static_cast<std::size_t>(tiles.cols) * static_cast<std::size_t>(stride) * sizeof *product);
  }
  __device__ void choose(unsigned columns) {
    const std::size_t by = columns * bytes / sizeof(float);
    products += by, done += by, product += by;
  }
  __device__ void publish(int strip, unsigned number) const {
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(done + strip), "r"(number) : "memory");
  }
  /// Looks at most `patience` + 1 times.
  __device__ bool is_there(int strip, unsigned number, int patience) const {
    for (;; --patience) {
      unsigned found;
      asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(found) : "l"(done + strip) : "memory");
      if (found == number) return true;
      if (patience == 0) return false;
    }
  }
};

/// Where the parts of a block's shared memory begin, behind W, and where all ends.
struct Stage {
  int entries;  ///< for which there is room
  std::size_t row_ptr, shifts, columns, values, bytes;

  Stage(std::int64_t in, int tiles, int rows) : entries(kEntriesOfRow * rows) {
    const auto after = [](std::size_t begin, int words) { return begin + static_cast<std::size_t>(words + 3) / 4 * 16; };
    row_ptr = bytes_of_weights(in, tiles);
    shifts = after(row_ptr, rows + 1);
    columns = after(shifts, rows);
    values = after(columns, entries);
    bytes = after(values, entries);
  }
};

__device__ inline Split split(float first, float second) {
  const float high = rounded_tf32(first), high_second = rounded_tf32(second);
  return {high, high_second, first - high, second - high_second};
}

/// As split_weights(), where rows of W begin and end at multiples of 16 bytes: a thread splits four columns of two rows,
/// which is what two lanes take of each of two tiles.
template <int N>
__device__ void split_wide_weights(const Weights& of, int first_column, Split* to, int thread, int threads) {
  constexpr int kMembers = 4, kQuads = N * kTile / 4;
  const int products = of.steps * (kColumns / kTile);
#pragma unroll 4
  for (int i = thread; i < products * kMembers * kQuads; i += threads) {
    const int member = i % kMembers, quad = i / kMembers % kQuads, product = i / (kMembers * kQuads), j = quad % 4;
    const int k = product / 2 * kColumns + member * 4 + product % 2 * 2, n = first_column + quad * 4;
    float4 a{0, 0, 0, 0}, b{0, 0, 0, 0};
    const float* const w = of.w + k * of.ldw + n;
    if (k < of.in && n < of.out) a = *reinterpret_cast<const float4*>(w);
    if (k + 1 < of.in && n < of.out) b = *reinterpret_cast<const float4*>(w + of.ldw);
    const Split of_tile[2][2] = {{split(a.x, b.x), split(a.y, b.y)}, {split(a.z, b.z), split(a.w, b.w)}};
    // Threads with odd j store for the second lane first: so the eight threads that store at once use different banks.
    Split* const first = to + (product * N + quad / 4 * 2) * kWarp + 2 * j * kMembers + member;
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      first[t * kWarp + j % 2 * kMembers] = j % 2 == 0 ? of_tile[t][0] : of_tile[t][1];
      first[t * kWarp + (1 - j % 2) * kMembers] = j % 2 == 0 ? of_tile[t][1] : of_tile[t][0];
    }
  }
}

/// N: tiles of W's columns that a warp takes; `groups` warps take the same rows. kWide: rows of X, W and Y begin and end at
/// multiples of 16 bytes. The descriptor begins with the first and last strip of X that a tile of Y reads.
template <int N, bool kWide, std::size_t kWords>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    features_tiles(const FeatureRows a, const Weights weights, int groups, std::int32_t row_bytes,
                   const Operands<float, float> v, const Tiles tiles, Scratch scratch, int patience, const Stage stage,
                   const __grid_constant__ Descriptor<kWords> d) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ int missing;
  auto* const w = reinterpret_cast<Split*>(shared);
  auto* const row_ptr = reinterpret_cast<std::int32_t*>(shared + stage.row_ptr);
  auto* const shifts = reinterpret_cast<std::int32_t*>(shared + stage.shifts);
  const int block = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarp, of_lane = lane / 4, member = lane % 4;
  const int group = thread / kWarp % groups, row_warp = thread / kWarp / groups, apart = kWarps / groups * kRows;
  const int stride = groups * N * kTile, first_column = static_cast<int>(blockIdx.y) * stride;
  const int first_row = min(block * tiles.y_rows, tiles.rows), rows = min(tiles.y_rows, tiles.rows - first_row);
  const bool listed = !d.in_arguments && !a.shifts.one_shape();
  scratch.choose(blockIdx.y);

  for (int i = thread; d.in_arguments && i < rows; i += kThreads) shifts[i] = a.shifts.look_up(d.of, first_row + i);
  cuda::wait_for_previous();

  float4 x[kAhead][kOwn];
  const auto ask = [&](float4(&to)[kOwn], int first, int end, int step) {
    const Place place(v, row_bytes, weights.in, step * kColumns + member * 4);
#pragma unroll
    for (int h = 0; h < kOwn; ++h) to[h] = place.row<kWide>(first + h * kTile + of_lane, first + h * kTile + of_lane < end);
  };
  const auto end_of = [&](int tile) { return min((tile + 1) * tiles.x_rows, tiles.cols); };
  const auto ask_first_of = [&](int tile) {
#pragma unroll
    for (int e = 0; e < kAhead; ++e) ask(x[e], tile * tiles.x_rows + row_warp * kRows, end_of(tile), e);
  };
  ask_first_of(block);
  const unsigned number = scratch.products[block] + 1;
  for (int i = thread; i <= rows; i += kThreads) {
    copy(row_ptr + i, a.row_ptr + first_row + i);
    if (d.in_arguments || i == rows) continue;
    if (listed) copy(shifts + i, a.shifts.of(d.of) + first_row + i);
    else shifts[i] = a.shifts.look_up(d.of, first_row + i);
  }
  __pipeline_commit();
  Split* const of_group = w + group * weights.steps * 2 * N * kWarp;
  const int first_of_group = first_column + group * N * kTile, of_sharing = row_warp * kWarp + lane;
  if constexpr (kWide) split_wide_weights<N>(weights, first_of_group, of_group, of_sharing, kThreads / groups);
  else split_weights<N>(weights, first_of_group, of_group, of_sharing, kThreads / groups);
  __pipeline_wait_prior(0);
  __syncthreads();

  auto* const columns = reinterpret_cast<std::int32_t*>(shared + stage.columns);
  auto* const values = reinterpret_cast<float*>(shared + stage.values);
  const int entries = row_ptr[rows] - row_ptr[0];
  for (int i = thread; entries <= stage.entries && i < entries; i += kThreads) {
    copy(columns + i, a.col_idx + row_ptr[0] + i);
    copy(values + i, a.values + row_ptr[0] + i);
  }
  __pipeline_commit();

  for (int tile = block;;) {
    const int end = end_of(tile);
    for (int first = tile * tiles.x_rows + row_warp * kRows; first < end; first += apart) {
      float sum[N][4] = {};
      multiply_strip<N>(x, weights.steps, of_group + lane, sum, [&](float4(&to)[kOwn], bool of_next, int step) {
        ask(to, of_next ? first + apart : first, end, step);
      });
#pragma unroll
      for (int h = 0; h < kOwn; ++h) {
        const int row = first + h * kTile + of_lane;
        if (row >= end) continue;
        store_strip_row<N>(scratch.product + static_cast<std::int64_t>(row) * stride + group * N * kTile + member * 4, sum,
                           h);
      }
    }
    __syncthreads();
    const int strips = (end - tile * tiles.x_rows + kRows - 1) / kRows * groups;
    for (int i = thread; i < strips; i += kThreads) scratch.publish(tile * (tiles.x_rows / kRows) * groups + i, number);
    // Not earlier: blocks of the next product would take the places where this one spreads best.
    cuda::let_next_begin();
    bool all = true;
    const int beyond = (d.of[2 * block + 1] + 1) * groups;
    for (int i = d.of[2 * block] * groups + thread; i < beyond; i += kThreads)
      all = scratch.is_there(i, number, patience) && all;
    __pipeline_wait_prior(0);
    if (__syncthreads_and(all)) break;
    if (thread == 0) {
      int strip = d.of[2 * block] * groups;
      while (strip < beyond && scratch.is_there(strip, number, 0)) ++strip;
      missing = min(strip, beyond - 1) / groups;
    }
    __syncthreads();
    tile = missing / (tiles.x_rows / kRows);
    ask_first_of(tile);
  }
  if (thread == 0) scratch.products[block] = number;

  const std::int32_t first_entry = row_ptr[0];
  const bool staged = row_ptr[rows] - first_entry <= stage.entries;
  const std::int32_t* const column = staged ? columns : a.col_idx + first_entry;
  const float* const value = staged ? values : a.values + first_entry;
  const int lanes = stride / 4, j = thread % lanes * 4, step = kThreads / lanes;
  for (int first = thread / lanes; first < rows; first += kRowsAtOnce * step) {
    const float* from[kRowsAtOnce];
    int begin[kRowsAtOnce], end[kRowsAtOnce];
    float4 found[kRowsAtOnce][kDeep];
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const int row = first + r * step;
      from[r] = scratch.product + j, begin[r] = end[r] = 0;
      if (row >= rows) continue;
      from[r] += static_cast<std::int64_t>(shifts[row]) * stride;
      begin[r] = row_ptr[row] - first_entry, end[r] = row_ptr[row + 1] - first_entry;
#pragma unroll
      for (int e = 0; e < kDeep; ++e)
        if (begin[r] + e < end[r]) found[r][e] = *reinterpret_cast<const float4*>(from[r] + column[begin[r] + e] * stride);
    }
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      float4 sum{0, 0, 0, 0};
#pragma unroll
      for (int e = 0; e < kDeep; ++e)
        if (begin[r] + e < end[r]) add(sum, value[begin[r] + e], found[r][e]);
#pragma unroll 1
      for (int k = begin[r] + kDeep; k < end[r]; ++k)
        add(sum, value[k], *reinterpret_cast<const float4*>(from[r] + column[k] * stride));
      const int row = first + r * step;
      if (row < rows)
        store_features(v, kWide ? Stores::wide : Stores::narrow, v.y + (first_row + row) * v.ldy, first_column + j,
                       {sum.x, sum.y, sum.z, sum.w});
    }
  }
}

/// Calls f(std::integral_constant<int, tiles>()).
template <class F>
void with_tiles(int tiles, const F& f) {
  if (tiles == 2) f(std::integral_constant<int, 2>());
  else f(std::integral_constant<int, kMostTiles>());
}

constexpr std::int64_t up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

class FeaturesTiles final : public FeaturePlan {
 public:
  FeaturesTiles(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out, int patience)
      : FeaturePlan(std::move(batch), in, out), patience_(patience) {
    const BatchOffsets& at = this->batch().at;
    const DeviceGuard guard(this->batch().device);
    divide(std::max<std::int64_t>(1, std::max(at.rows(), at.cols())), cuda::multiprocessors(this->batch().device));
    for (int i = 0; i < tiles_.count; ++i) {
      const auto [first, last] = strips_of(i);
      descriptor_.insert(descriptor_.end(), {first, last});
    }
    shifts_ = RowShifts(descriptor_, at);
    send_with_product();
    scratch_bytes_ = static_cast<std::size_t>(across_) * Scratch(nullptr, tiles_, groups_, columns_of_block()).bytes;
    with_tiles(of_warp_, [&]<int N>(std::integral_constant<int, N>) {
      require_tensor_cores(reinterpret_cast<const void*>(features_tiles<N, true, 0>));
    });
  }

 private:
  /// Chooses tiles so that the GPU holds all blocks at once: one for each multiprocessor, or two if several share W's
  /// columns or if one has more rows than its warps take at once. A small batch has taller tiles of fewer columns: so W is
  /// split less often.
  void divide(std::int64_t rows, std::int64_t multiprocessors) {
    constexpr std::int64_t kAtOnce = kWarps * kRows;
    const bool small = out() > 2 * kTile && 2 * rows <= kAtOnce * multiprocessors;
    int of_block = 2;
    while (!small && of_block < kMostTiles && of_block * kTile < out()) of_block *= 2;
    across_ = up(out(), of_block * kTile);
    std::int64_t most = small ? std::max<std::int64_t>(1, multiprocessors / 2) : multiprocessors;
    if (across_ == 1 && rows > kAtOnce * multiprocessors) most *= kBlocksPerSm;
    tiles_.rows = static_cast<int>(batch().at.rows()), tiles_.cols = static_cast<int>(batch().at.cols());
    tiles_.x_rows = static_cast<int>(up(up(rows, most), kRows)) * kRows;
    tiles_.count = static_cast<int>(up(rows, tiles_.x_rows));
    tiles_.y_rows = static_cast<int>(up(tiles_.rows, tiles_.count));
    while (of_block / groups_ > 2 && tiles_.x_rows / kRows * groups_ * 2 <= kWarps) groups_ *= 2;
    of_warp_ = of_block / groups_;
  }

  /// The first and the last strip of X that the matrices of a tile of Y read; the last is before the first if there is none.
  std::pair<std::int32_t, std::int32_t> strips_of(int tile) const {
    const BatchOffsets& at = batch().at;
    const std::int64_t begin = std::int64_t{tile} * tiles_.y_rows, end = std::min(begin + tiles_.y_rows, at.rows());
    if (begin >= end) return {0, -1};
    const auto matrix = [&](std::int64_t row) {
      return std::upper_bound(at.first_row.begin(), at.first_row.end(), row) - at.first_row.begin() - 1;
    };
    const std::int32_t first = at.first_col[static_cast<std::size_t>(matrix(begin))],
                       beyond = at.first_col[static_cast<std::size_t>(matrix(end - 1)) + 1];
    if (first == beyond) return {0, -1};
    return {first / kRows, (beyond - 1) / kRows};
  }

  void run(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
           const Epilogue& epilogue, Stream& stream) const override {
    const auto v = operands<float, float>(out(), x, ldx, y, ldy, epilogue);
    const bool wide = rows_are_whole(x, ldx, in()) && rows_are_whole(w, ldw, out()) && rows_are_whole(y, ldy, out());
    const Stage stage(in(), of_warp_ * groups_, tiles_.y_rows);
    const Scratch scratch(this->scratch(), tiles_, groups_, columns_of_block());
    with_descriptor([&]<std::size_t kWords>(const Descriptor<kWords>& descriptor) {
      with_tiles(of_warp_, [&]<int N>(std::integral_constant<int, N>) {
        const auto launch = [&](auto kernel) {
          cuda::allow_shared_memory(kernel, stage.bytes, stream.device());
          cuda::launch_grid_early(
              kernel, tiles_.count, across_, dim3(kThreads), stage.bytes, stream,
              FeatureRows{batch().row_ptr, batch().col_idx, static_cast<const float*>(batch().values), shifts_},
              Weights{static_cast<const float*>(w), ldw, static_cast<int>(in()), static_cast<int>(out()), steps_of(in())},
              groups_, bytes_of_row<float>(ldx, "X"), v, tiles_, scratch, patience_, stage, descriptor);
        };
        if (wide) launch(features_tiles<N, true, kWords>);
        else launch(features_tiles<N, false, kWords>);
      });
    });
  }

  int columns_of_block() const { return of_warp_ * groups_ * kTile; }

  int patience_;
  Tiles tiles_{};
  int of_warp_ = 2, groups_ = 1;  ///< tiles of W's columns that a warp takes, and warps that take the same rows
  std::int64_t across_ = 1;       ///< blocks that share W's columns
};

}  // namespace

bool divided_by_rows(const DeviceBatch& batch, std::int64_t in, std::int64_t out) {
  return divided_by_rows(batch.at, in, out, cuda::multiprocessors(batch.device));
}

std::unique_ptr<FeaturePlan> make_features_tiles(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out,
                                                 int patience) {
  return std::make_unique<FeaturesTiles>(std::move(batch), in, out, patience);
}

}  // namespace shardmat
