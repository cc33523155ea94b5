// Graph convolutions with X·W first. A block takes a group of whole matrices and some columns of W. Its warps multiply 16
// rows of X at a time with W on tensor cores, and the product stays in shared memory, where the rows of A find it. So a row
// of X leaves memory once for each block of columns, and no load waits for an index. The rows of A come into shared memory
// while the tensor cores work.
#include <algorithm>
#include <type_traits>

#include "kernels/batched/features_plans.h"
#include "kernels/batched/features_tensor.h"
#include "kernels/batched/groups.h"
#include "kernels/batched/weights_first.h"

namespace shardmat {
namespace {

using namespace batched;

constexpr int kMostThreads = 256;
constexpr int kBlocksPerSm = 2;
constexpr int kMostTiles = 8;
constexpr int kRowsOfBlock = kMostThreads / kWarp * kRows;
constexpr int kEntriesOfRow = 8;  ///< that shared memory has room for

/// Where the parts of a block's shared memory begin, behind W, and where all ends.
struct Stage {
  int entries;  ///< for which there is room
  std::size_t product, row_ptr, shifts, columns, values, bytes;

  Stage(std::int64_t in, int tiles, const Largest& most) {
    const auto after = [](std::size_t begin, std::size_t words) { return begin + (words + 3) / 4 * 16; };
    const auto rows = static_cast<std::size_t>(most.rows), cols = static_cast<std::size_t>(most.cols);
    entries = std::min(most.entries, kEntriesOfRow * std::max(most.rows, kRowsOfBlock));
    product = bytes_of_weights(in, tiles);
    row_ptr = after(product, cols * static_cast<std::size_t>(tiles * kTile));
    shifts = after(row_ptr, rows + 1);
    columns = after(shifts, rows);
    values = after(columns, static_cast<std::size_t>(entries));
    bytes = after(values, static_cast<std::size_t>(entries));
  }
};

/// Rows of X and of Y, and entries, of a group.
struct Group {
  std::int32_t row = 0, rows = 0, col = 0, cols = 0, entry = 0, entries = 0;

  __device__ Group(const int4* groups, int i, int count) {
    if (i >= count) return;
    const int4 begin = groups[i], end = groups[i + 1];
    row = begin.x, rows = end.x - begin.x, col = begin.y, cols = end.y - begin.y;
    entry = begin.z, entries = end.z - begin.z;
  }
};

/// N: tiles of W's columns that a block takes. kWide: rows of X begin and end at multiples of 16 bytes. The descriptor
/// begins with the groups, as in groups.h.
template <int N, bool kWide, std::size_t kWords>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerSm)
    features_weights_first(const FeatureRows a, const Weights weights, std::int32_t row_bytes, Stores how,
                           const Operands<float, float> v, int count, const Stage stage,
                           const __grid_constant__ Descriptor<kWords> d) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto* const w = reinterpret_cast<Split*>(shared);
  auto* const product = reinterpret_cast<float*>(shared + stage.product);
  auto* const row_ptr = reinterpret_cast<std::int32_t*>(shared + stage.row_ptr);
  auto* const shifts = reinterpret_cast<std::int32_t*>(shared + stage.shifts);
  auto* const columns = reinterpret_cast<std::int32_t*>(shared + stage.columns);
  auto* const values = reinterpret_cast<float*>(shared + stage.values);
  constexpr int kStride = N * kTile, kLanes = kStride / 4;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, of_lane = lane / 4, member = lane % 4;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, threads = static_cast<int>(blockDim.x), warps = threads / kWarp;
  const int first_column = static_cast<int>(blockIdx.y) * N * kTile;
  float4 x[kAhead][kOwn];
  const auto ask = [&](float4(&to)[kOwn], int first, int end, int step) {
    const Place place(v, row_bytes, weights.in, step * kColumns + member * 4);
#pragma unroll
    for (int h = 0; h < kOwn; ++h) to[h] = place.row<kWide>(first + h * kTile + of_lane, first + h * kTile + of_lane < end);
  };

  const auto* const groups = reinterpret_cast<const int4*>(d.of);
  const bool listed = !d.in_arguments && !a.shifts.one_shape();

  cuda::let_next_begin();
  if constexpr (!d.in_arguments) cuda::wait_for_previous();
  Group group(groups, static_cast<int>(blockIdx.x), count);
  if constexpr (d.in_arguments) cuda::wait_for_previous();
#pragma unroll
  for (int d = 0; d < kAhead; ++d) ask(x[d], group.col + warp * kRows, group.col + group.cols, d);
  split_weights<N>(weights, first_column, w);
  __syncthreads();
  for (int at = static_cast<int>(blockIdx.x); at < count; at += static_cast<int>(gridDim.x)) {
    const bool staged = group.entries <= stage.entries;
    for (int i = static_cast<int>(threadIdx.x); i <= group.rows; i += threads) {
      copy(row_ptr + i, a.row_ptr + group.row + i);
      if (i == group.rows) break;
      if (listed) copy(shifts + i, a.shifts.of(d.of) + group.row + i);
      else shifts[i] = a.shifts.look_up(d.of, group.row + i);
    }
    for (int i = static_cast<int>(threadIdx.x); staged && i < group.entries; i += threads) {
      copy(columns + i, a.col_idx + group.entry + i);
      copy(values + i, a.values + group.entry + i);
    }
    __pipeline_commit();
    const Group next(groups, at + static_cast<int>(gridDim.x), count);
    const int end = group.col + group.cols;
    int first = group.col + warp * kRows;  // of the strip's rows of X
    do {
      const bool last = first + warps * kRows >= end;
      const int first_after = last ? next.col + warp * kRows : first + warps * kRows;
      const int end_after = last ? next.col + next.cols : end;
      float sum[N][4] = {};
      multiply_strip<N>(x, weights.steps, w + lane, sum, [&](float4(&to)[kOwn], bool of_next, int step) {
        ask(to, of_next ? first_after : first, of_next ? end_after : end, step);
      });
#pragma unroll
      for (int h = 0; h < kOwn; ++h) {
        const int row = first + h * kTile + of_lane;
        if (row >= end) continue;
        store_strip_row<N>(product + (row - group.col) * kStride + member * 4, sum, h);
      }
      first += warps * kRows;
    } while (first < end);
    __pipeline_wait_prior(0);
    __syncthreads();

    const int j = static_cast<int>(threadIdx.x) % kLanes * 4;
    const auto add_up = [&](const std::int32_t* column, const float* value) {
      for (int row = static_cast<int>(threadIdx.x) / kLanes; row < group.rows; row += threads / kLanes) {
        const float* const from = product + (shifts[row] - group.col) * kStride + j;
        float4 sum{0, 0, 0, 0};
        const int end = row_ptr[row + 1] - group.entry;
        for (int k = row_ptr[row] - group.entry; k < end; ++k)
          add(sum, value[k], *reinterpret_cast<const float4*>(from + column[k] * kStride));
        store_features(v, how, v.y + (group.row + row) * v.ldy, first_column + j, {sum.x, sum.y, sum.z, sum.w});
      }
    };
    if (staged) add_up(columns, values);
    else add_up(a.col_idx + group.entry, a.values + group.entry);
    __syncthreads();
    group = next;
  }
}

/// Calls f(std::integral_constant<int, tiles>()).
template <class F>
void with_tiles(int tiles, const F& f) {
  if (tiles == 2) f(std::integral_constant<int, 2>());
  else if (tiles == 4) f(std::integral_constant<int, 4>());
  else f(std::integral_constant<int, kMostTiles>());
}

class FeaturesWeightsFirst final : public FeaturePlan {
 public:
  FeaturesWeightsFirst(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out)
      : FeaturePlan(std::move(batch), in, out) {
    const Device device = this->batch().device;
    const DeviceGuard guard(device);
    Groups groups(this->batch().at, rows_of_group(cuda::multiprocessors(device)));
    largest_ = groups.largest;
    groups_ = static_cast<int>(groups.count);
    descriptor_ = groups.take();
    shifts_ = RowShifts(descriptor_, this->batch().at);
    send_with_product();
    warps_ = std::clamp((largest_.cols + kRows - 1) / kRows, 1, kMostThreads / kWarp);
    while (tiles_ < kMostTiles && tiles_ * kTile < out) tiles_ *= 2;
    while (tiles_ > 2 && stage(tiles_).bytes > cuda::most_shared_memory(device) / kBlocksPerSm) tiles_ /= 2;
    // A small batch is spread over the device by taking fewer columns at once.
    std::int64_t held = blocks_held(tiles_);
    for (int fewer = tiles_ / 2; fewer >= 2; fewer /= 2) {
      const std::int64_t more = blocks_held(fewer);
      if (groups_ * across(fewer) > more) break;
      tiles_ = fewer, held = more;
    }
    blocks_ = std::min<std::int64_t>(groups_, std::max<std::int64_t>(1, held / across(tiles_)));
  }

 private:
  void run(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
           const Epilogue& epilogue, Stream& stream) const override {
    const auto v = operands<float, float>(out(), x, ldx, y, ldy, epilogue);
    const Stores how = !rows_are_whole(y, ldy, out()) ? Stores::narrow : v.plain() ? Stores::plain : Stores::wide;
    const Stage stage = this->stage(tiles_);
    with_descriptor([&]<std::size_t kWords>(const Descriptor<kWords>& descriptor) {
      with_tiles(tiles_, [&]<int N>(std::integral_constant<int, N>) {
        const auto launch = [&](auto kernel) {
          cuda::allow_shared_memory(kernel, stage.bytes, stream.device());
          cuda::launch_grid_early(
              kernel, blocks_, across(tiles_), dim3(static_cast<unsigned>(warps_ * kWarp)), stage.bytes, stream,
              FeatureRows{batch().row_ptr, batch().col_idx, static_cast<const float*>(batch().values), shifts_},
              Weights{static_cast<const float*>(w), ldw, static_cast<int>(in()), static_cast<int>(out()), steps_of(in())},
              bytes_of_row<float>(ldx, "X"), how, v, groups_, stage, descriptor);
        };
        if (rows_are_whole(x, ldx, in())) launch(features_weights_first<N, true, kWords>);
        else launch(features_weights_first<N, false, kWords>);
      });
    });
  }

  /// Groups are smaller where larger ones would not fill the device. With fewer features in or more out, splitting W in each
  /// of more blocks costs more than that gains.
  int rows_of_group(std::int64_t multiprocessors) const {
    constexpr int kFew = kRowsOfBlock / 2;
    constexpr std::int64_t kFeatures = 64;
    return in() > kFeatures && out() <= kFeatures && batch().at.rows() <= kFew * multiprocessors ? kFew : kRowsOfBlock;
  }
  Stage stage(int tiles) const { return {in(), tiles, largest_}; }
  std::int64_t across(int tiles) const { return (out() + tiles * kTile - 1) / (tiles * kTile); }
  /// Blocks that the device holds at once.
  std::int64_t blocks_held(int tiles) const {
    const std::size_t bytes = stage(tiles).bytes;
    int of_one = 0;
    with_tiles(tiles, [&]<int N>(std::integral_constant<int, N>) {
      const auto kernel = features_weights_first<N, true, 0>;
      require_tensor_cores(reinterpret_cast<const void*>(kernel));
      cuda::allow_shared_memory(kernel, bytes, batch().device);
      SHARDMAT_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_one, kernel, warps_ * kWarp, bytes));
    });
    return std::int64_t{of_one} * cuda::multiprocessors(batch().device);
  }

  int tiles_ = 2;  ///< of W's columns that a block takes
  int groups_ = 0, warps_ = 1;
  std::int64_t blocks_ = 1;  ///< for each of those across
  Largest largest_;
};

}  // namespace

std::unique_ptr<FeaturePlan> make_features_weights_first(std::shared_ptr<const DeviceBatch> batch, std::int64_t in,
                                                         std::int64_t out) {
  return std::make_unique<FeaturesWeightsFirst>(std::move(batch), in, out);
}

}  // namespace shardmat
