// Batched CSR products as in Nagasaka, Nukada, Kojima and Matsuoka (CCGrid'19), Fig. 4 and 5 (c), (d) and section 4.3: a
// sub-warp a row; every matrix gets the threads of the one with the most rows, superfluous ones end at once. The sums of a
// row lie in shared memory; where those of all sub-warps of a block do not fit, the columns are cut into blocks, each with
// thread blocks of its own. With shared=0, sums go to Y entry by entry (Fig. 4).
#include "kernels/batched/kernels.h"
#include "kernels/batched/operands.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

using namespace batched;

template <class T, class A, bool kInShared>
__global__ void swa_product(SwaSpread spread, const std::int32_t* __restrict__ first_row,
                            const std::int32_t* __restrict__ first_col, const std::int32_t* __restrict__ row_ptr,
                            const std::int32_t* __restrict__ col_idx, const A* __restrict__ values, Operands<T, A> v) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int row_block = static_cast<int>(blockIdx.x) % spread.row_blocks,
            rest = static_cast<int>(blockIdx.x) / spread.row_blocks;
  const int part = rest % spread.parts, matrix = rest / spread.parts;
  const int sub_warp = static_cast<int>(threadIdx.x) / spread.sub_warp,
            lane = static_cast<int>(threadIdx.x) % spread.sub_warp;
  const std::int64_t row =
      __ldg(first_row + matrix) + std::int64_t{row_block} * (static_cast<int>(blockDim.x) / spread.sub_warp) + sub_warp;
  if (row >= __ldg(first_row + matrix + 1)) return;
  const int first = part * spread.part_columns, last = min(first + spread.part_columns, v.columns);
  const A* x = v.x + __ldg(first_col + matrix) * v.ldx;
  T* sums = reinterpret_cast<T*>(shared) + sub_warp * spread.part_columns;
  T* y = v.y + row * v.ldy;
  for (int j = first + lane; j < last; j += spread.sub_warp) {
    if constexpr (kInShared) sums[j - first] = 0;
    else y[j] = set_aside(v, v.beta == T(0) ? T(0) : y[j], j);
  }
  const std::int32_t end = __ldg(row_ptr + row + 1);
  for (std::int32_t k = __ldg(row_ptr + row); k < end; ++k) {
    const std::int64_t column = __ldg(col_idx + k);
    const T value = dense::widened(__ldg(values + k));
    for (int j = first + lane; j < last; j += spread.sub_warp) {
      const T product = value * dense::widened(__ldg(x + column * v.ldx + j));
      if constexpr (kInShared) sums[j - first] += product;
      else y[j] += v.alpha * product;
    }
  }
  for (int j = first + lane; j < last; j += spread.sub_warp) {
    if constexpr (kInShared) y[j] = finished(v, sums[j - first], v.beta == T(0) ? T(0) : y[j], j);
    else if (v.relu && y[j] < T(0)) y[j] = T(0);
  }
}

class SwaPlan final : public BatchedPlan {
 public:
  SwaPlan(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns, const Policy& policy)
      : BatchedPlan(std::move(batch), columns),
        block_(cuda::block_size_of(policy, "swa")),
        in_shared_(policy.at("shared") != 0) {
    const BatchOffsets& at = this->batch().at;
    descriptor_ = at.first_row;
    descriptor_.insert(descriptor_.end(), at.first_col.begin(), at.first_col.end());
    spread_ = swa_spread(at.most_rows, static_cast<std::int64_t>(size_of(sum_type(this->batch().type))), columns, block_,
                         in_shared_);
  }

 private:
  void run(const void* x, std::int64_t ldx, void* y, std::int64_t ldy, const Epilogue& epilogue,
           Stream& stream) const override {
    dispatch(batch().type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto v = operands<T, T>(columns(), x, ldx, y, ldy, epilogue);
      const auto* first_row = static_cast<const std::int32_t*>(work());
      const std::int64_t blocks = batch().at.count() * spread_.parts * spread_.row_blocks;
      const std::size_t shared =
          in_shared_ ? static_cast<std::size_t>(block_ / spread_.sub_warp) * spread_.part_columns * sizeof(T) : 0;
      cuda::launch_blocks(in_shared_ ? swa_product<T, T, true> : swa_product<T, T, false>, blocks, block_, shared, stream,
                          spread_, first_row, first_row + batch().at.count() + 1, batch().row_ptr, batch().col_idx,
                          static_cast<const T*>(batch().values), v);
    });
  }

  int block_;
  bool in_shared_;
  SwaSpread spread_;
};

}  // namespace

std::vector<Policy> swa_policies(const DeviceBatch& batch, std::int64_t) {
  if (is_half(batch.type)) return {};
  std::vector<Policy> all;
  for (const int block_size : kSwaBlocks)
    for (const int shared : {1, 0}) all.push_back({{"block_size", block_size}, {"shared", shared}});
  return all;
}

std::unique_ptr<BatchedPlan> make_swa(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns, const Policy& policy) {
  return std::make_unique<SwaPlan>(std::move(batch), columns, policy);
}

}  // namespace shardmat
