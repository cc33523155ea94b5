// Products of SparseTensors as TensorFlow's SparseTensorDenseMatMul makes them (Nagasaka et al., Fig. 2), the baseline of
// batched kernels: Y is set, then a thread a nonzero and column multiplies once and adds atomically; one matrix after the
// other, two launches each.
#include "kernels/batched/kernels.h"
#include "kernels/batched/operands.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

using namespace batched;

constexpr int kBlock = kTensorflowBlock;

template <class T>
__global__ void add_products(std::int64_t nnz, const std::int32_t* __restrict__ row_idx,
                             const std::int32_t* __restrict__ col_idx, const T* __restrict__ values, Operands<T, T> v) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const std::int64_t k = thread / v.columns, j = thread % v.columns;
  if (k >= nnz) return;
  atomicAdd(v.y + __ldg(row_idx + k) * v.ldy + j, v.alpha * __ldg(values + k) * __ldg(v.x + __ldg(col_idx + k) * v.ldx + j));
}

class TensorflowPlan final : public BatchedPlan {
 public:
  TensorflowPlan(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns) : BatchedPlan(std::move(batch), columns) {}

  bool reproducible() const override { return false; }

 private:
  void run(const void* x, std::int64_t ldx, void* y, std::int64_t ldy, const Epilogue& epilogue,
           Stream& stream) const override {
    dispatch(batch().type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const BatchOffsets& at = batch().at;
      for (std::size_t i = 0; i < static_cast<std::size_t>(at.count()); ++i) {
        auto v = operands<T, T>(columns(), x, ldx, y, ldy, epilogue);
        v.x += at.first_col[i] * ldx;
        v.y += at.first_row[i] * ldy;
        const std::int64_t entries = std::int64_t{at.first_row[i + 1] - at.first_row[i]} * v.columns;
        const std::int64_t nnz = at.first_entry[i + 1] - at.first_entry[i];
        cuda::launch(finish_rows<T, Pass::before>, entries, kBlock, stream, entries, v);
        cuda::launch(add_products<T>, nnz * v.columns, kBlock, stream, nnz, batch().row_idx + at.first_entry[i],
                     batch().col_idx + at.first_entry[i], static_cast<const T*>(batch().values) + at.first_entry[i], v);
        if (v.relu) cuda::launch(finish_rows<T, Pass::after>, entries, kBlock, stream, entries, v);
      }
    });
  }
};

}  // namespace

std::vector<Policy> coo_tensorflow_policies(const DeviceBatch& batch, std::int64_t) {
  if (is_half(batch.type)) return {};
  return {Policy{}};
}

std::unique_ptr<BatchedPlan> make_coo_tensorflow(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                                 const Policy&) {
  return std::make_unique<TensorflowPlan>(std::move(batch), columns);
}

}  // namespace shardmat
