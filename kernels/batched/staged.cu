// Batched CSR products with X in shared memory: a block takes a few whole matrices, one if it is not tiny, and a block of
// columns. Where the arrays of a group begin is known from its descriptor, so that its rows of X, row pointers, columns and
// values are all asked for at once and none of these loads waits for another; X then leaves memory once, whatever the
// pattern.
#include <cuda_pipeline.h>

#include "kernels/batched/bulk_copy.h"
#include "kernels/batched/groups.h"
#include "kernels/batched/kernels.h"
#include "kernels/batched/operands.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

using namespace batched;

constexpr int kMostBlock = 512;
constexpr int kWidest = 8;                     ///< columns that a lane takes at once at most
constexpr int kLine = 128;                     ///< bytes of a row of X that a block takes at least
constexpr std::size_t kGoodShared = 48 << 10;  ///< a block: several of them fit a multiprocessor
constexpr std::size_t kMostShared = 200 << 10;

/// How the shared memory of a block is laid out, and how a block works.
struct Stage {
  int block_columns;  ///< of X and Y, a multiple of what a lane takes at once
  int column_blocks;  ///< for each group
  int lanes_log;
  bool bulk;                                            ///< the rows of X lie without gaps, and bulk copies exist
  bool shifted;                                         ///< groups have several matrices
  std::size_t values, columns, row_ptr, shifts, bytes;  ///< where they begin, behind X, and where all ends

  Stage(const Largest& most, int columns_at_once, int lanes, std::size_t value_bytes)
      : block_columns(columns_at_once), column_blocks(1), lanes_log(log2_of(lanes)), bulk(false), shifted(true) {
    const auto after = [](std::size_t begin, std::size_t length) { return (begin + length + 15) / 16 * 16; };
    const auto count = [](int n) { return static_cast<std::size_t>(n); };
    values = after(0, count(most.cols) * count(block_columns) * value_bytes);
    columns = after(values, count(most.entries) * value_bytes);
    row_ptr = after(columns, count(most.entries) * sizeof(std::int32_t));
    shifts = after(row_ptr, (count(most.rows) + 1) * sizeof(std::int32_t));
    bytes = after(shifts, count(most.rows) * sizeof(std::int32_t));
  }
};

/// The arrays of a batch.
template <class A>
struct Arrays {
  const std::int32_t *row_ptr, *col_idx;
  const A* values;
};

/// One entry or stretch into shared memory, past the registers where the hardware can.
template <class V>
__device__ void copy(V* shared, const V* global) {
  if constexpr (sizeof(V) >= 4) __pipeline_memcpy_async(shared, global, sizeof(V));
  else *shared = *global;
}

/// The descriptor begins with the first row, first column and first entry of each group, and of the end. Blocks come group
/// by group. A lane has P stretches of W columns.
template <class T, class A, int W, int P, bool kPlain, std::size_t kWords>
__global__ void __launch_bounds__(kMostBlock) staged_product(Stage stage, Arrays<A> a, Operands<T, A> v, RowShifts of_rows,
                                                             const __grid_constant__ Descriptor<kWords> d) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ std::uint64_t barrier;
  cuda::let_next_begin();
  const int group = static_cast<int>(blockIdx.x) / stage.column_blocks;
  const int first = (static_cast<int>(blockIdx.x) - group * stage.column_blocks) * stage.block_columns;
  auto* const shifts = reinterpret_cast<std::int32_t*>(shared + stage.shifts);
  if constexpr (!d.in_arguments) cuda::wait_for_previous();
  const int4 begin = reinterpret_cast<const int4*>(d.of)[group], end = reinterpret_cast<const int4*>(d.of)[group + 1];
  const bool listed = !d.in_arguments && !of_rows.one_shape();
  for (int i = static_cast<int>(threadIdx.x); stage.shifted && !listed && i < end.x - begin.x;
       i += static_cast<int>(blockDim.x))
    shifts[i] = of_rows.look_up(d.of, begin.x + i);
  if constexpr (d.in_arguments) cuda::wait_for_previous();
  const int rows = end.x - begin.x, cols = end.y - begin.y, entries = end.z - begin.z;
  const int width = min(stage.block_columns, v.columns - first);
  const int lanes = 1 << stage.lanes_log, lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int sub_warp = static_cast<int>(threadIdx.x) >> stage.lanes_log;
  const int threads = static_cast<int>(blockDim.x), sub_warps = threads >> stage.lanes_log;

  A* const x = reinterpret_cast<A*>(shared);
  const A* const from = v.x + begin.y * v.ldx + first;
  if (stage.bulk) {
    if (threadIdx.x == 0) {
      const unsigned bytes = static_cast<unsigned>(cols) * static_cast<unsigned>(width) * static_cast<unsigned>(sizeof(A));
      expect_bytes(&barrier, bytes);
      copy_bulk(x, from, bytes, &barrier);
    }
  } else {
    for (int row = sub_warp; row < cols; row += sub_warps)
      for (int j = lane * W; j < width; j += lanes * W)
        copy(reinterpret_cast<Stretch<A, W>*>(x + row * stage.block_columns + j),
             reinterpret_cast<const Stretch<A, W>*>(from + row * v.ldx + j));
  }
  auto* const begins = reinterpret_cast<std::int32_t*>(shared + stage.row_ptr);
  auto* const column = reinterpret_cast<std::int32_t*>(shared + stage.columns);
  A* const value = reinterpret_cast<A*>(shared + stage.values);
  for (int i = static_cast<int>(threadIdx.x); i <= rows; i += threads) {
    copy(begins + i, a.row_ptr + begin.x + i);
    if (stage.shifted && listed && i < rows) copy(shifts + i, of_rows.of(d.of) + begin.x + i);
  }
  for (int i = static_cast<int>(threadIdx.x); i < entries; i += threads) {
    copy(column + i, a.col_idx + begin.z + i);
    copy(value + i, a.values + begin.z + i);
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  if (stage.bulk) wait_for_bytes(&barrier);

  const int row_bytes = stage.block_columns * static_cast<int>(sizeof(A));
  for (int row = sub_warp; row < rows; row += sub_warps) {
    const int last = begins[row + 1] - begin.z, shift = stage.shifted ? shifts[row] - begin.y : 0;
    T* const y = v.y + (begin.x + row) * v.ldy + first;
    for (int j = lane * W; j < width; j += P * lanes * W) {
      const unsigned char* const of_lane = shared + j * static_cast<int>(sizeof(A)) + shift * row_bytes;
      const bool second = P == 2 && j + lanes * W < width;
      const int apart = second ? lanes * W * static_cast<int>(sizeof(A)) : 0;
      T sum[P][W] = {};
      for (int k = begins[row] - begin.z; k < last; ++k) {
        const unsigned char* const at = of_lane + column[k] * row_bytes;
        const A factor = value[k];
#pragma unroll
        for (int p = 0; p < P; ++p) add_product<T>(sum[p], factor, load_shared<W, A>(at + p * apart));
      }
      store<kPlain>(v, y + j, first + j, sum[0]);
      if (second) store<kPlain>(v, y + j + lanes * W, first + j + lanes * W, sum[P - 1]);
    }
  }
}

/// Shared memory of a block with so many columns.
std::size_t shared_bytes(const Largest& most, std::int64_t columns, std::size_t value_bytes) {
  return Stage(most, static_cast<int>(columns), 1, value_bytes).bytes;
}

class StagedPlan final : public BatchedPlan {
 public:
  StagedPlan(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns, const Policy& policy)
      : BatchedPlan(std::move(batch), columns),
        block_(cuda::block_size_of(policy, "staged")),
        block_columns_(policy.at("columns")) {
    const int rows = policy.at("rows");
    if (block_ > kMostBlock || rows < 1 || block_columns_ < 1 || block_columns_ % kWidest != 0)
      throw Error(ErrorKind::usage, "staged: block_size must be at most 512, rows at least 1, columns a multiple of 8");
    Groups groups(this->batch().at, rows);
    groups_ = groups.count;
    largest_ = groups.largest;
    const std::size_t needed = shared_bytes(largest_, block_columns_, size_of(this->batch().type));
    if (const std::size_t most = cuda::most_shared_memory(this->batch().device); needed > most)
      throw Error(ErrorKind::usage, "staged: the largest matrices would take " + std::to_string(needed) +
                                        " bytes of shared memory, a block has at most " + std::to_string(most) +
                                        "; take fewer columns at once or the kernel rows");
    descriptor_ = groups.take();
    shifted_ = groups_ < this->batch().at.count();
    if (shifted_) shifts_ = RowShifts(descriptor_, this->batch().at);
    send_with_product();
    bulk_ = cuda::compiled_for_9_0(staged_product<float, float, 4, 1, true, 0>, this->batch().device);
  }

 private:
  void run(const void* x, std::int64_t ldx, void* y, std::int64_t ldy, const Epilogue& epilogue,
           Stream& stream) const override {
    dispatch_operands(batch().type, [&](auto of_a, auto of_sum) {
      using A = typename decltype(of_a)::type;
      using T = typename decltype(of_sum)::type;
      const auto v = operands<T, A>(this->columns(), x, ldx, y, ldy, epilogue);
      with_instance(v, [&](auto instance) {
        constexpr int kWidth = decltype(instance)::width;
        constexpr bool kPlain = decltype(instance)::plain, kWide = kWidth * sizeof(A) == 16;
        const int columns = std::min(block_columns_, (v.columns + kWidth - 1) / kWidth * kWidth);
        const int lanes = lanes_for(columns / kWidth);
        Stage stage(largest_, columns, lanes, sizeof(A));
        stage.column_blocks = (v.columns + columns - 1) / columns;
        stage.bulk = kWide && bulk_ && columns == v.columns && v.ldx == v.columns;
        stage.shifted = shifted_;
        const Arrays<A> arrays{batch().row_ptr, batch().col_idx, static_cast<const A*>(batch().values)};
        with_descriptor([&]<std::size_t kWords>(const Descriptor<kWords>& descriptor) {
          const auto launch = [&](auto kernel) {
            cuda::allow_shared_memory(kernel, stage.bytes, stream.device());
            cuda::launch_grid_early(kernel, groups_ * stage.column_blocks, 1, dim3(static_cast<unsigned>(block_)),
                                    stage.bytes, stream, stage, arrays, v, shifts_, descriptor);
          };
          if constexpr (kWide)
            if (columns > lanes * kWidth) return launch(staged_product<T, A, kWidth, 2, kPlain, kWords>);
          launch(staged_product<T, A, kWidth, 1, kPlain, kWords>);
        });
      });
    });
  }

  int block_, block_columns_;
  bool bulk_ = false, shifted_ = false;
  std::int64_t groups_ = 0;
  Largest largest_;
};

}  // namespace

std::vector<Policy> staged_policies(const DeviceBatch& batch, std::int64_t columns) {
  if (batch.at.rows() == 0) return {};
  // A matrix a block, but for tiny ones.
  const int rows = batch.at.rows() >= 8 * batch.at.count() ? 1 : 16;
  std::vector<Policy> policies;
  const std::size_t size = size_of(batch.type);
  const int line = kLine / static_cast<int>(size);
  const Largest most = largest_group(batch.at, rows);
  const std::size_t limit = std::min(kMostShared, cuda::most_shared_memory(batch.device));
  // The widest that leaves room for several blocks first, then half of it, then whatever fits.
  int widest = line;
  while (widest < columns && widest < 8 * line && shared_bytes(most, 2 * widest, size) <= kGoodShared) widest *= 2;
  while (widest > 16 && shared_bytes(most, widest, size) > limit) widest /= 2;
  if (shared_bytes(most, widest, size) > limit) return {};
  for (const int at_once : {widest, std::min(widest, std::max(line, widest / 2))})
    for (const int block : {128, 64, 256})
      if (const Policy policy{{"columns", at_once}, {"block_size", block}, {"rows", rows}};
          std::find(policies.begin(), policies.end(), policy) == policies.end())
        policies.push_back(policy);
  return policies;
}

double staged_estimate(const DeviceBatch& batch, std::int64_t columns, const Policy& policy) {
  constexpr double kShare = 0.92, kStart = 4e6;  // a block's loads are all done before its first sum begins: 1 µs
  const std::size_t shared = shared_bytes(largest_group(batch.at, policy.at("rows")),
                                          std::min<std::int64_t>(policy.at("columns"), columns), size_of(batch.type));
  return kStart + static_cast<double>(batch.compulsory_bytes(columns)) / kShare *
                      std::max(1.0, static_cast<double>(shared) / static_cast<double>(kGoodShared));
}

std::unique_ptr<BatchedPlan> make_staged(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                         const Policy& policy) {
  return std::make_unique<StagedPlan>(std::move(batch), columns, policy);
}

}  // namespace shardmat
