// CRS with NT threads a row, as we read Okada, Okamoto and Imamura: 256 threads a block, a row's threads take its nonzeros
// in turn, and their partial sums are added in shared memory. The text shows no code. Loops are not unrolled and nothing is
// read through the read-only cache, so the formula for NT is judged on the kind of kernel that it was made for.
#include "kernels/cuda/launch.h"
#include "kernels/formats/crs_paper.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

constexpr int kCrsBlock = 256;

template <class T, class Offset, int NT>
__global__ void crs_paper(std::int64_t rows, const Offset* row_ptr, const std::int32_t* col_idx, const T* values, T alpha,
                          const T* x, T beta, T* y) {
  __shared__ T partial[kCrsBlock];
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kCrsBlock + threadIdx.x;
  const std::int64_t row = thread / NT;
  const int lane = static_cast<int>(thread % NT);
  T sum = 0;
  if (row < rows) {
    const Offset end = row_ptr[row + 1];
#pragma unroll 1
    for (Offset k = row_ptr[row] + lane; k < end; k += NT) sum += values[k] * x[col_idx[k]];
  }
  partial[threadIdx.x] = sum;
#pragma unroll 1
  for (int half = NT / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (row >= rows || lane != 0) return;
  sum = partial[threadIdx.x];
  y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row];
}

/// The instance for a number of threads a row.
template <class T, class Offset>
auto crs_instance(int threads_per_row) {
  switch (threads_per_row) {
    case 1:
      return crs_paper<T, Offset, 1>;
    case 2:
      return crs_paper<T, Offset, 2>;
    case 4:
      return crs_paper<T, Offset, 4>;
    case 8:
      return crs_paper<T, Offset, 8>;
    case 16:
      return crs_paper<T, Offset, 16>;
    default:
      return crs_paper<T, Offset, 32>;
  }
}

}  // namespace

std::unique_ptr<Plan> make_crs_paper(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  return typed_plan<CsrStorage>(std::move(storage), [threads = crs_paper_threads(policy)]<class T>(
                                                        const CsrStorage& a, const Operands<T>& v, Stream& stream) {
    dispatch_offset(a.wide_offsets, [&](auto offset) {
      using Offset = typename decltype(offset)::type;
      cuda::launch(crs_instance<T, Offset>(threads), a.rows * threads, kCrsBlock, stream, a.rows, a.row_ptr.as<Offset>(),
                   a.col_idx.as<std::int32_t>(), a.values.as<T>(), v.alpha, v.x, v.beta, v.y);
    });
  });
}

}  // namespace shardmat
