// CSR with many right-hand sides as in Nagasaka, Nukada, Kojima and Matsuoka, "Batched sparse matrix-matrix multiplication
// for accelerating graph convolutional networks" (CCGrid'19), Fig. 4: a sub-warp takes a row, its lanes stride over the
// columns of X; subWarp = 32 for more than 16 columns, else the smallest power of two that holds them. The sum of an entry
// stays in a register, where the paper's stays in shared memory.
#include "kernels/cuda/launch.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/csr_spmm.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

constexpr int kBlock = 256;

template <class T, class Offset>
__global__ void csr_swa(std::int64_t rows, std::int64_t columns, int sub_warp, const Offset* __restrict__ row_ptr,
                        const std::int32_t* __restrict__ col_idx, const T* __restrict__ values, T alpha,
                        const T* __restrict__ x, DenseStrides of_x, T beta, T* __restrict__ y, DenseStrides of_y) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x) / sub_warp;
  if (row >= rows) return;
  const Offset begin = row_ptr[row], end = row_ptr[row + 1];
  for (std::int64_t j = threadIdx.x % sub_warp; j < columns; j += sub_warp) {
    T sum = 0;
    for (Offset k = begin; k < end; ++k)
      sum += __ldg(values + k) * __ldg(x + __ldg(col_idx + k) * of_x.row + j * of_x.column);
    T& out = y[row * of_y.row + j * of_y.column];
    out = beta == T(0) ? alpha * sum : alpha * sum + beta * out;
  }
}

class CsrSwaPlan final : public SpmmPlan {
 public:
  CsrSwaPlan(std::shared_ptr<CsrStorage> a, const RightHandSides& rhs) : SpmmPlan(a, rhs), a_(std::move(a)) {
    while (sub_warp_ < 32 && sub_warp_ < rhs.count) sub_warp_ *= 2;
  }

 private:
  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
           Stream& stream) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      dispatch_offset(a_->wide_offsets, [&](auto offset) {
        using Offset = typename decltype(offset)::type;
        cuda::launch(csr_swa<T, Offset>, a_->rows * sub_warp_, kBlock, stream, a_->rows, right_hand_sides().count, sub_warp_,
                     a_->row_ptr.as<Offset>(), a_->col_idx.as<std::int32_t>(), a_->values.as<T>(), static_cast<T>(alpha),
                     static_cast<const T*>(x), strides(right_hand_sides().x, ldx), static_cast<T>(beta), static_cast<T*>(y),
                     strides(right_hand_sides().y, ldy));
      });
    });
  }

  std::shared_ptr<CsrStorage> a_;
  int sub_warp_ = 1;
};

}  // namespace

std::unique_ptr<SpmmPlan> make_csr_swa(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy&, Stream&) {
  return std::make_unique<CsrSwaPlan>(std::static_pointer_cast<CsrStorage>(std::move(storage)), rhs);
}

}  // namespace shardmat
