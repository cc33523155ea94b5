// Batched products of SparseTensors, entries in any order, as in Nagasaka, Nukada, Kojima and Matsuoka (CCGrid'19), Fig. 3
// and 5 (a), (b) and section 4.3: a sub-warp a nonzero, sums by atomic additions. If the Y of the largest matrix fits into
// shared memory, a thread block makes the Y of one matrix there; else all are cut into as many blocks of columns as that one
// needs, one thread block each; a matrix that does not fit even so (more than 8192 rows in f32) takes all to the kernel that
// adds in global memory, which sets Y first.
#include "kernels/batched/kernels.h"
#include "kernels/batched/operands.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

using namespace batched;

constexpr int kElementwiseBlock = 256;

struct Arrays {
  const std::int32_t *first_row, *first_col, *first_entry, *row_idx, *col_idx;
};

/// Fig. 5 (a), (b): block x has a matrix, block y its columns.
template <class T>
__global__ void add_in_shared(int sub_warp, int part_columns, Arrays a, const T* __restrict__ values, Operands<T, T> v) {
  extern __shared__ __align__(16) unsigned char shared[];
  T* sums = reinterpret_cast<T*>(shared);
  const int matrix = static_cast<int>(blockIdx.x), first = static_cast<int>(blockIdx.y) * part_columns;
  const int width = min(part_columns, v.columns - first);
  const std::int32_t first_row = __ldg(a.first_row + matrix), rows = __ldg(a.first_row + matrix + 1) - first_row;
  const T* x = v.x + __ldg(a.first_col + matrix) * v.ldx + first;
  for (int i = static_cast<int>(threadIdx.x); i < rows * width; i += static_cast<int>(blockDim.x)) sums[i] = 0;
  __syncthreads();
  const std::int32_t end = __ldg(a.first_entry + matrix + 1);
  const int lane = static_cast<int>(threadIdx.x) % sub_warp;
  for (std::int32_t k = __ldg(a.first_entry + matrix) + static_cast<int>(threadIdx.x) / sub_warp; k < end;
       k += static_cast<int>(blockDim.x) / sub_warp) {
    const std::int32_t row = __ldg(a.row_idx + k), column = __ldg(a.col_idx + k);
    const T value = __ldg(values + k);
    for (int j = lane; j < width; j += sub_warp) atomicAdd(sums + row * width + j, value * __ldg(x + column * v.ldx + j));
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < rows * width; i += static_cast<int>(blockDim.x)) {
    T& y = v.y[(first_row + i / width) * v.ldy + first + i % width];
    y = finished(v, sums[i], v.beta == T(0) ? T(0) : y, first + i % width);
  }
}

/// Fig. 3: blocks come matrix by matrix, `blocks` for each.
template <class T>
__global__ void add_in_global(int sub_warp, int blocks, Arrays a, const T* __restrict__ values, Operands<T, T> v) {
  const int matrix = static_cast<int>(blockIdx.x) / blocks, block = static_cast<int>(blockIdx.x) % blocks;
  const std::int64_t k = __ldg(a.first_entry + matrix) +
                         (std::int64_t{block} * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) / sub_warp;
  if (k >= __ldg(a.first_entry + matrix + 1)) return;
  const std::int64_t row = __ldg(a.first_row + matrix) + __ldg(a.row_idx + k);
  const std::int64_t column = __ldg(a.first_col + matrix) + __ldg(a.col_idx + k);
  const T value = v.alpha * __ldg(values + k);
  for (int j = static_cast<int>(threadIdx.x) % sub_warp; j < v.columns; j += sub_warp)
    atomicAdd(v.y + row * v.ldy + j, value * __ldg(v.x + column * v.ldx + j));
}

class CooSwaPlan final : public BatchedPlan {
 public:
  CooSwaPlan(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns, const Policy& policy)
      : BatchedPlan(std::move(batch), columns), block_(cuda::block_size_of(policy, "coo_swa")) {
    const BatchOffsets& at = this->batch().at;
    for (const auto* offsets : {&at.first_row, &at.first_col, &at.first_entry})
      descriptor_.insert(descriptor_.end(), offsets->begin(), offsets->end());
    part_columns_ = coo_swa_part_columns(at.most_rows, static_cast<std::int64_t>(size_of(this->batch().type)), columns);
  }

  bool reproducible() const override { return false; }

 private:
  void run(const void* x, std::int64_t ldx, void* y, std::int64_t ldy, const Epilogue& epilogue,
           Stream& stream) const override {
    dispatch(batch().type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto v = operands<T, T>(columns(), x, ldx, y, ldy, epilogue);
      const BatchOffsets& at = batch().at;
      const auto* offsets = static_cast<const std::int32_t*>(work());
      const Arrays a{offsets, offsets + at.count() + 1, offsets + 2 * (at.count() + 1), batch().row_idx, batch().col_idx};
      const auto* values = static_cast<const T*>(batch().values);
      const int sub_warp = sub_warp_of(v.columns);
      if (part_columns_ > 0) {
        const std::size_t shared =
            static_cast<std::size_t>(at.most_rows) * static_cast<std::size_t>(part_columns_) * sizeof(T);
        cuda::launch_grid(add_in_shared<T>, at.count(), (v.columns + part_columns_ - 1) / part_columns_,
                          dim3(static_cast<unsigned>(block_)), shared, stream, sub_warp, part_columns_, a, values, v);
        return;
      }
      const auto finish = [&](Pass pass) {
        cuda::launch(pass == Pass::before ? finish_rows<T, Pass::before> : finish_rows<T, Pass::after>,
                     at.rows() * v.columns, kElementwiseBlock, stream, at.rows() * v.columns, v);
      };
      finish(Pass::before);
      const int blocks = static_cast<int>((std::int64_t{at.most_entries} * sub_warp + block_ - 1) / block_);
      cuda::launch_blocks(add_in_global<T>, at.count() * blocks, block_, 0, stream, sub_warp, blocks, a, values, v);
      if (v.relu) finish(Pass::after);
    });
  }

  int block_, part_columns_ = 0;
};

}  // namespace

std::vector<Policy> coo_swa_policies(const DeviceBatch& batch, std::int64_t) {
  if (is_half(batch.type)) return {};
  std::vector<Policy> all;
  for (const int block_size : kCooSwaBlocks) all.push_back({{"block_size", block_size}});
  return all;
}

std::unique_ptr<BatchedPlan> make_coo_swa(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                          const Policy& policy) {
  return std::make_unique<CooSwaPlan>(std::move(batch), columns, policy);
}

}  // namespace shardmat
