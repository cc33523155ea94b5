// Row block packing as in the paper: one thread a row, column indices of a run by counting in a register, the single
// nonzeros last. rbp_ell is one loop over positions, not a loop over runs around one over columns, so that the threads of a
// warp stay on the same column of run_values and read it side by side.
#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/rbp.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T, class Offset>
struct Singles {
  const Offset* ptr;
  const std::int32_t* columns;
  const T* values;
};

template <class T, class Offset>
__device__ T add_singles(const Singles<T, Offset>& singles, const T* __restrict__ x, std::int64_t row, T sum) {
  const Offset end = singles.ptr[row + 1];
  for (Offset k = singles.ptr[row]; k < end; ++k) sum += __ldg(singles.values + k) * __ldg(x + __ldg(singles.columns + k));
  return sum;
}

/// Algorithm 4.
template <class T, class Offset>
__global__ void rbp_csr(std::int64_t rows, const Offset* __restrict__ value_ptr, const Offset* __restrict__ bound_ptr,
                        const T* __restrict__ values, const std::int32_t* __restrict__ bounds, Singles<T, Offset> singles,
                        T alpha, const T* __restrict__ x, T beta, T* __restrict__ y) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  T sum = 0;
  const Offset end = bound_ptr[row + 1];
  Offset k = value_ptr[row];
  for (Offset run = bound_ptr[row]; run < end; run += 2) {
    const std::int32_t last = bounds[run + 1];
    for (std::int32_t column = bounds[run]; column <= last; ++column, ++k) sum += values[k] * x[column];
  }
  sum = add_singles(singles, x, row, sum);
  y[row] = beta == T(0) ? alpha * sum : fma(beta, y[row], alpha * sum);
}

/// Algorithm 5. With lengths (rbp_ell_r) a row ends at its length, else at the first padding; a run has two columns or more,
/// so that equal bounds are padding.
template <class T, class Offset>
__global__ void rbp_ell(std::int64_t rows, std::int64_t width_values, std::int64_t width_bounds,
                        const std::int32_t* __restrict__ lengths, const T* __restrict__ values,
                        const std::int32_t* __restrict__ bounds, Singles<T, Offset> singles, T alpha,
                        const T* __restrict__ x, T beta, T* __restrict__ y) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  T sum = 0;
  const std::int64_t length = lengths == nullptr ? width_values : lengths[row];
  std::int64_t next_bound = 0;
  std::int32_t column = 0, last = -1;
  for (std::int64_t j = 0; j < length; ++j) {
    if (column > last) {
      if (next_bound == width_bounds) break;
      column = bounds[next_bound * rows + row];
      last = bounds[(next_bound + 1) * rows + row];
      next_bound += 2;
      if (column == last) break;
    }
    sum += values[j * rows + row] * x[column];
    ++column;
  }
  sum = add_singles(singles, x, row, sum);
  y[row] = beta == T(0) ? alpha * sum : fma(beta, y[row], alpha * sum);
}

template <class T, class Offset>
Singles<T, Offset> singles_of(const RbpStorage& a) {
  return {a.single_ptr.as<Offset>(), a.single_columns.as<std::int32_t>(), a.single_values.as<T>()};
}

int checked_block_size(const Policy& policy) {
  if (policy.at("paper") != 1)
    throw Error(ErrorKind::usage, "row block packing: paper must be 1, there is no other variant");
  return cuda::block_size_of(policy, "row block packing");
}

}  // namespace

std::unique_ptr<Plan> make_rbp_csr(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int block_size = checked_block_size(policy);
  return typed_plan<RbpCsrStorage>(
      std::move(storage), [block_size]<class T>(const RbpCsrStorage& a, const Operands<T>& p, Stream& stream) {
        dispatch_offset(a.wide_offsets, [&](auto offset) {
          using Offset = typename decltype(offset)::type;
          cuda::launch(rbp_csr<T, Offset>, a.rows, block_size, stream, a.rows, a.value_ptr.as<Offset>(),
                       a.bound_ptr.as<Offset>(), a.run_values.as<T>(), a.run_bounds.as<std::int32_t>(),
                       singles_of<T, Offset>(a), p.alpha, p.x, p.beta, p.y);
        });
      });
}

std::unique_ptr<Plan> make_rbp_ell(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const int block_size = checked_block_size(policy);
  return typed_plan<RbpEllStorage>(
      std::move(storage), [block_size]<class T>(const RbpEllStorage& a, const Operands<T>& p, Stream& stream) {
        const RunStatistics& s = a.runs->statistics;
        dispatch_offset(a.wide_offsets, [&](auto offset) {
          using Offset = typename decltype(offset)::type;
          cuda::launch(rbp_ell<T, Offset>, a.rows, block_size, stream, a.rows, s.max_in_runs, s.max_bounds,
                       a.lengths.as<std::int32_t>(), a.run_values.as<T>(), a.run_bounds.as<std::int32_t>(),
                       singles_of<T, Offset>(a), p.alpha, p.x, p.beta, p.y);
        });
      });
}

}  // namespace shardmat
