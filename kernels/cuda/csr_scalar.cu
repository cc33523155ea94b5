// CSR, one thread a row: the textbook kernel, uncoalesced and divergent; kept as the baseline and for very short rows.
#include "kernels/cuda/launch.h"
#include "kernels/formats/csr.h"

namespace shardmat {
namespace {

template <class T, class Offset>
__global__ void csr_scalar(std::int64_t rows, const Offset* __restrict__ row_ptr, const std::int32_t* __restrict__ col_idx,
                           const T* __restrict__ values, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  T sum = 0;
  const Offset end = row_ptr[row + 1];
  for (Offset k = row_ptr[row]; k < end; ++k) sum += values[k] * x[col_idx[k]];
  y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row];
}

class CsrScalarPlan final : public Plan {
 public:
  CsrScalarPlan(std::shared_ptr<CsrStorage> a, int block_size) : Plan(a), a_(std::move(a)), block_size_(block_size) {}

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      a_->wide_offsets ? run<T, std::int64_t>(alpha, x, beta, y, stream) : run<T, std::int32_t>(alpha, x, beta, y, stream);
    });
  }

 private:
  template <class T, class Offset>
  void run(double alpha, const void* x, double beta, void* y, Stream& stream) const {
    cuda::launch(csr_scalar<T, Offset>, a_->rows, block_size_, stream, a_->rows, a_->row_ptr.as<Offset>(),
                 a_->col_idx.as<std::int32_t>(), a_->values.as<T>(), static_cast<T>(alpha), static_cast<const T*>(x),
                 static_cast<T>(beta), static_cast<T*>(y));
  }

  std::shared_ptr<CsrStorage> a_;
  int block_size_;
};

}  // namespace

std::unique_ptr<Plan> make_csr_scalar(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  return std::make_unique<CsrScalarPlan>(std::static_pointer_cast<CsrStorage>(std::move(storage)),
                                         cuda::block_size_of(policy, "csr_scalar"));
}

}  // namespace shardmat
