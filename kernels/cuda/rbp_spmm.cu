// Row block packing with several right-hand sides. Neighbouring threads, a power of two, take a row together, as
// in csr_swa.cu: they lie along the columns of X, and each has up to eight columns. So the bounds and values of a row are
// read once for 256 columns, and the columns of a run by counting in a register. Runs come first, then the single nonzeros.
#include "kernels/cuda/launch.h"
#include "kernels/formats/rbp.h"
#include "kernels/formats/rbp_spmm.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T>
struct DenseOperands {
  std::int64_t columns;
  T alpha;
  const T* x;
  DenseStrides of_x;
  T beta;
  T* y;
  DenseStrides of_y;
};

template <class T, class Offset>
struct Singles {
  const Offset* ptr;
  const std::int32_t* columns;
  const T* values;
};

/// Sums of the columns first, first + apart … of a row.
template <class T, int P>
struct Sums {
  std::int64_t first, apart;
  T of[P] = {};

  __device__ void add(const DenseOperands<T>& v, T value, std::int64_t row_of_x) {
    const T* __restrict__ x = v.x + row_of_x * v.of_x.row;
#pragma unroll
    for (int p = 0; p < P; ++p)
      if (first + p * apart < v.columns) of[p] += value * __ldg(x + (first + p * apart) * v.of_x.column);
  }
  template <class Offset>
  __device__ void add(const DenseOperands<T>& v, const Singles<T, Offset>& singles, std::int64_t row) {
    const Offset end = singles.ptr[row + 1];
    for (Offset k = singles.ptr[row]; k < end; ++k) add(v, __ldg(singles.values + k), __ldg(singles.columns + k));
  }
  __device__ void put(const DenseOperands<T>& v, std::int64_t row) const {
#pragma unroll
    for (int p = 0; p < P; ++p) {
      if (first + p * apart >= v.columns) return;
      T& out = v.y[row * v.of_y.row + (first + p * apart) * v.of_y.column];
      out = v.beta == T(0) ? v.alpha * of[p] : fma(v.beta, out, v.alpha * of[p]);
    }
  }
};

template <class T, class Offset, int P>
__global__ void rbp_csr_spmm(std::int64_t rows, int sub_warp, const Offset* __restrict__ value_ptr,
                             const Offset* __restrict__ bound_ptr, const T* __restrict__ values,
                             const std::int32_t* __restrict__ bounds, Singles<T, Offset> singles, DenseOperands<T> v) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, row = thread / sub_warp;
  if (row >= rows) return;
  const Offset end = bound_ptr[row + 1];
  for (std::int64_t j = thread % sub_warp; j < v.columns; j += std::int64_t{P} * sub_warp) {
    Sums<T, P> sums{j, sub_warp};
    Offset k = value_ptr[row];
    for (Offset run = bound_ptr[row]; run < end; run += 2) {
      const std::int32_t last = bounds[run + 1];
      for (std::int32_t column = bounds[run]; column <= last; ++column, ++k) sums.add(v, values[k], column);
    }
    sums.add(v, singles, row);
    sums.put(v, row);
  }
}

/// As rbp_ell in rbp.cu: with lengths (rbp_ell_r) a row ends at its length, else at the first padding.
template <class T, class Offset, int P>
__global__ void rbp_ell_spmm(std::int64_t rows, int sub_warp, std::int64_t width_values, std::int64_t width_bounds,
                             const std::int32_t* __restrict__ lengths, const T* __restrict__ values,
                             const std::int32_t* __restrict__ bounds, Singles<T, Offset> singles, DenseOperands<T> v) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, row = thread / sub_warp;
  if (row >= rows) return;
  const std::int64_t length = lengths == nullptr ? width_values : lengths[row];
  for (std::int64_t j = thread % sub_warp; j < v.columns; j += std::int64_t{P} * sub_warp) {
    Sums<T, P> sums{j, sub_warp};
    std::int64_t at = 0;
    for (std::int64_t bound = 0; bound < width_bounds && at < length; bound += 2) {
      const std::int32_t first = bounds[bound * rows + row], last = bounds[(bound + 1) * rows + row];
      if (first == last) break;  // padding: a run has two columns or more
      for (std::int32_t column = first; column <= last; ++column, ++at) sums.add(v, values[at * rows + row], column);
    }
    sums.add(v, singles, row);
    sums.put(v, row);
  }
}

/// A plan that calls launch(a, operands, sub_warp, std::integral_constant<int, P>(), offset, stream) with P columns a
/// thread.
template <class S, class Launch>
class RbpSpmmPlan final : public SpmmPlan {
 public:
  RbpSpmmPlan(std::shared_ptr<S> a, const RightHandSides& rhs, Launch launch)
      : SpmmPlan(a, rhs), a_(std::move(a)), launch_(std::move(launch)) {
    while (sub_warp_ < 32 && sub_warp_ < rhs.count) sub_warp_ *= 2;
  }

 private:
  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
           Stream& stream) const override {
    const RightHandSides& rhs = right_hand_sides();
    const std::int64_t each = (rhs.count + sub_warp_ - 1) / sub_warp_;
    dispatch(a_->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const DenseOperands<T> v{rhs.count,           static_cast<T>(alpha), static_cast<const T*>(x),
                               strides(rhs.x, ldx), static_cast<T>(beta),  static_cast<T*>(y),
                               strides(rhs.y, ldy)};
      dispatch_offset(a_->wide_offsets, [&](auto offset) {
        if (each == 1) launch_(*a_, v, sub_warp_, std::integral_constant<int, 1>(), offset, stream);
        else if (each <= 2) launch_(*a_, v, sub_warp_, std::integral_constant<int, 2>(), offset, stream);
        else if (each <= 4) launch_(*a_, v, sub_warp_, std::integral_constant<int, 4>(), offset, stream);
        else launch_(*a_, v, sub_warp_, std::integral_constant<int, 8>(), offset, stream);
      });
    });
  }

  std::shared_ptr<S> a_;
  Launch launch_;
  int sub_warp_ = 1;
};

template <class S, class Launch>
std::unique_ptr<SpmmPlan> rbp_spmm_plan(std::shared_ptr<Storage> storage, const RightHandSides& rhs, Launch launch) {
  return std::make_unique<RbpSpmmPlan<S, Launch>>(std::static_pointer_cast<S>(std::move(storage)), rhs, std::move(launch));
}

template <class T, class Offset>
Singles<T, Offset> singles_of(const RbpStorage& a) {
  return {a.single_ptr.as<Offset>(), a.single_columns.as<std::int32_t>(), a.single_values.as<T>()};
}

}  // namespace

std::vector<Policy> rbp_spmm_policies(const Storage&, const RightHandSides&) { return {Policy{{"block_size", 128}}}; }

std::unique_ptr<SpmmPlan> make_rbp_csr_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                            const Policy& policy, Stream&) {
  return rbp_spmm_plan<RbpCsrStorage>(std::move(storage), rhs,
                                      [block_size = cuda::block_size_of(policy, "rbp_csr")]<class T, int P, class Offset>(
                                          const RbpCsrStorage& a, const DenseOperands<T>& v, int sub_warp,
                                          std::integral_constant<int, P>, TypeTag<Offset>, Stream& stream) {
                                        cuda::launch(rbp_csr_spmm<T, Offset, P>, a.rows * sub_warp, block_size, stream,
                                                     a.rows, sub_warp, a.value_ptr.as<Offset>(), a.bound_ptr.as<Offset>(),
                                                     a.run_values.as<T>(), a.run_bounds.as<std::int32_t>(),
                                                     singles_of<T, Offset>(a), v);
                                      });
}

std::unique_ptr<SpmmPlan> make_rbp_ell_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                            const Policy& policy, Stream&) {
  return rbp_spmm_plan<RbpEllStorage>(std::move(storage), rhs,
                                      [block_size = cuda::block_size_of(policy, "rbp_ell")]<class T, int P, class Offset>(
                                          const RbpEllStorage& a, const DenseOperands<T>& v, int sub_warp,
                                          std::integral_constant<int, P>, TypeTag<Offset>, Stream& stream) {
                                        const RunStatistics& s = a.runs->statistics;
                                        cuda::launch(rbp_ell_spmm<T, Offset, P>, a.rows * sub_warp, block_size, stream,
                                                     a.rows, sub_warp, s.max_in_runs, s.max_bounds,
                                                     a.lengths.as<std::int32_t>(), a.run_values.as<T>(),
                                                     a.run_bounds.as<std::int32_t>(), singles_of<T, Offset>(a), v);
                                      });
}

}  // namespace shardmat
