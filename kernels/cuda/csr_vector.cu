// CSR-vector: NT = 1, 2, 4 … 32 neighbouring threads share a row (Okada, Okamoto and Imamura). Each thread issues the index
// and value loads of up to kUnroll of its nonzeros before it gathers from x, so that a row costs two trips to memory instead
// of two for every NT nonzeros; that, and leaving the cache policy alone (streaming hints cost up to 40 % because
// neighbouring rows share cache lines), is what lifts it over the usual formulation.
#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/csr.h"

namespace shardmat {
namespace {

constexpr int kUnroll = 8;

template <class T, class Offset, int NT>
__global__ void csr_vector(std::int64_t rows, const Offset* __restrict__ row_ptr, const std::int32_t* __restrict__ col_idx,
                           const T* __restrict__ values, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t row = thread / NT;
  const int lane = static_cast<int>(thread % NT);
  T sum = 0;
  if (row < rows) {
    const Offset end = row_ptr[row + 1];
    for (Offset k = row_ptr[row] + lane; k < end; k += kUnroll * NT) {
      std::int32_t column[kUnroll];
      T value[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const bool inside = k + u * NT < end;
        column[u] = inside ? __ldg(col_idx + k + u * NT) : -1;
        value[u] = inside ? __ldg(values + k + u * NT) : T(0);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (column[u] >= 0) sum += value[u] * __ldg(x + column[u]);
    }
  }
#pragma unroll
  for (int offset = NT / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset, NT);
  if (row < rows && lane == 0) y[row] = beta == T(0) ? alpha * sum : fma(beta, y[row], alpha * sum);
}

/// The instance for a number of threads a row, or null.
template <class T, class Offset>
auto instance(int threads_per_row) -> decltype(&csr_vector<T, Offset, 1>) {
  switch (threads_per_row) {
    case 1:
      return csr_vector<T, Offset, 1>;
    case 2:
      return csr_vector<T, Offset, 2>;
    case 4:
      return csr_vector<T, Offset, 4>;
    case 8:
      return csr_vector<T, Offset, 8>;
    case 16:
      return csr_vector<T, Offset, 16>;
    case 32:
      return csr_vector<T, Offset, 32>;
    default:
      return nullptr;
  }
}

class CsrVectorPlan final : public Plan {
 public:
  CsrVectorPlan(std::shared_ptr<CsrStorage> a, int threads_per_row, int block_size)
      : Plan(a), a_(std::move(a)), threads_per_row_(threads_per_row), block_size_(block_size) {}

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      a_->wide_offsets ? run<T, std::int64_t>(alpha, x, beta, y, stream) : run<T, std::int32_t>(alpha, x, beta, y, stream);
    });
  }

 private:
  template <class T, class Offset>
  void run(double alpha, const void* x, double beta, void* y, Stream& stream) const {
    cuda::launch(instance<T, Offset>(threads_per_row_), a_->rows * threads_per_row_, block_size_, stream, a_->rows,
                 a_->row_ptr.as<Offset>(), a_->col_idx.as<std::int32_t>(), a_->values.as<T>(), static_cast<T>(alpha),
                 static_cast<const T*>(x), static_cast<T>(beta), static_cast<T*>(y));
  }

  std::shared_ptr<CsrStorage> a_;
  int threads_per_row_;
  int block_size_;
};

}  // namespace

std::unique_ptr<Plan> make_csr_vector(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int threads = policy.at("threads_per_row"), block_size = cuda::block_size_of(policy, "csr_vector");
  if (instance<float, std::int32_t>(threads) == nullptr)
    throw Error(ErrorKind::usage, "csr_vector: threads_per_row must be 1, 2, 4, 8, 16 or 32");
  return std::make_unique<CsrVectorPlan>(std::static_pointer_cast<CsrStorage>(std::move(storage)), threads, block_size);
}

}  // namespace shardmat
