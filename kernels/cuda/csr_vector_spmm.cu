// CSR-vector with several right-hand sides: NT = 1, 2, 4 … 32 neighbouring threads share a row, as in csr_vector.cu, and
// each sums C columns of its nonzeros in registers. The threads of a row add their sums by shuffles. More than C columns:
// the threads go through the row again, which then lies in cache.
#include <algorithm>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/csr_spmm.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T, class Offset, int C>
__global__ void csr_vector_spmm(std::int64_t rows, std::int64_t columns, int threads_per_row,
                                const Offset* __restrict__ row_ptr, const std::int32_t* __restrict__ col_idx,
                                const T* __restrict__ values, T alpha, const T* __restrict__ x, DenseStrides of_x, T beta,
                                T* __restrict__ y, DenseStrides of_y) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t row = thread / threads_per_row;
  const int lane = static_cast<int>(thread % threads_per_row);
  const bool inside = row < rows;  // all threads of a warp shuffle
  const Offset begin = inside ? row_ptr[row] : 0, end = inside ? row_ptr[row + 1] : 0;
  for (std::int64_t first = 0; first < columns; first += C) {
    T sum[C] = {};
    for (Offset k = begin + lane; k < end; k += threads_per_row) {
      const T value = __ldg(values + k);
      const T* of_row = x + __ldg(col_idx + k) * of_x.row + first * of_x.column;
#pragma unroll
      for (int c = 0; c < C; ++c)
        if (first + c < columns) sum[c] += value * __ldg(of_row + c * of_x.column);
    }
    for (int offset = threads_per_row / 2; offset > 0; offset /= 2)
#pragma unroll
      for (int c = 0; c < C; ++c) sum[c] += __shfl_xor_sync(0xffffffffu, sum[c], offset, threads_per_row);
    if (!inside) continue;
#pragma unroll
    for (int c = 0; c < C; ++c) {  // every thread has all sums, and writes some
      if (first + c >= columns || c % threads_per_row != lane) continue;
      T& out = y[row * of_y.row + (first + c) * of_y.column];
      out = beta == T(0) ? alpha * sum[c] : fma(beta, out, alpha * sum[c]);
    }
  }
}

class CsrVectorSpmmPlan final : public SpmmPlan {
 public:
  CsrVectorSpmmPlan(std::shared_ptr<CsrStorage> a, const RightHandSides& rhs, int threads_per_row, int block_size)
      : SpmmPlan(a, rhs), a_(std::move(a)), threads_per_row_(threads_per_row), block_size_(block_size) {}

 private:
  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
           Stream& stream) const override {
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      dispatch_offset(a_->wide_offsets, [&](auto offset) {
        using Offset = typename decltype(offset)::type;
        const std::int64_t columns = right_hand_sides().count;
        const auto kernel = columns <= 2   ? csr_vector_spmm<T, Offset, 2>
                            : columns <= 4 ? csr_vector_spmm<T, Offset, 4>
                                           : csr_vector_spmm<T, Offset, 8>;
        cuda::launch(kernel, a_->rows * threads_per_row_, block_size_, stream, a_->rows, columns, threads_per_row_,
                     a_->row_ptr.as<Offset>(), a_->col_idx.as<std::int32_t>(), a_->values.as<T>(), static_cast<T>(alpha),
                     static_cast<const T*>(x), strides(right_hand_sides().x, ldx), static_cast<T>(beta), static_cast<T*>(y),
                     strides(right_hand_sides().y, ldy));
      });
    });
  }

  std::shared_ptr<CsrStorage> a_;
  int threads_per_row_, block_size_;
};

}  // namespace

/// A quarter of the mean row first, so that a thread has some nonzeros; then its neighbours.
std::vector<Policy> csr_vector_spmm_policies(const Storage& storage, const RightHandSides&) {
  const std::int64_t mean = storage.rows > 0 ? storage.nnz / storage.rows : 0;
  int first = 1;
  while (first < 32 && first * 8 <= mean) first *= 2;
  std::vector<Policy> all;
  std::vector<int> numbers{first};
  for (const int threads : {first * 2, first / 2, 8})  // with 8 the bits are those of a product with one right-hand side
    if (threads >= 1 && threads <= 32 && std::find(numbers.begin(), numbers.end(), threads) == numbers.end())
      numbers.push_back(threads);
  for (const int threads : numbers) all.push_back(Policy{{"threads_per_row", threads}, {"block_size", 256}});
  return all;
}

std::unique_ptr<SpmmPlan> make_csr_vector_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                               const Policy& policy, Stream&) {
  const int threads = policy.at("threads_per_row");
  if (threads < 1 || threads > 32 || (threads & (threads - 1)) != 0)
    throw Error(ErrorKind::usage, "csr_vector: threads_per_row must be 1, 2, 4, 8, 16 or 32");
  return std::make_unique<CsrVectorSpmmPlan>(std::static_pointer_cast<CsrStorage>(std::move(storage)), rhs, threads,
                                             cuda::block_size_of(policy, "csr_vector"));
}

}  // namespace shardmat
