#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/timer.h"
#include "kernels/cuda/cusparse_plan.h"
#include "tools/bench/cublas.h"
#include "tools/bench/textbook_cg.h"

namespace shardmat::tools {
namespace {

using Matrix = cuda::CusparseObject<cusparseSpMatDescr_t, &cuda::CusparseCalls::DestroySpMat>;
using Vector = cuda::CusparseObject<cusparseDnVecDescr_t, &cuda::CusparseCalls::DestroyDnVec>;

template <class T>
Buffer upload(std::span<const T> values, Stream& stream) {
  Buffer buffer(stream.device(), values.size_bytes());
  copy_to_device(buffer.data(), values.data(), values.size_bytes(), stream);
  return buffer;
}

/// The diagonal blocks of `size` rows, row by row. REQUIRES: size divides the rows.
std::vector<double> diagonal_blocks(const HostCsr& a, std::int64_t size) {
  std::vector<double> blocks(static_cast<std::size_t>(a.rows * size));
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k)
      if (a.col_idx[k] / size == i / size) blocks[static_cast<std::size_t>(i * size + a.col_idx[k] % size)] += a.values[k];
  return blocks;
}

/// Gauss-Jordan without pivots: the blocks of a positive definite matrix need none.
void invert(std::span<double> block, std::size_t size) {
  for (std::size_t k = 0; k < size; ++k) {
    const double pivot = 1 / block[k * size + k];
    block[k * size + k] = 1;
    for (std::size_t j = 0; j < size; ++j) block[k * size + j] *= pivot;
    for (std::size_t i = 0; i < size; ++i) {
      if (i == k) continue;
      const double factor = std::exchange(block[i * size + k], 0);
      for (std::size_t j = 0; j < size; ++j) block[i * size + j] -= factor * block[k * size + j];
    }
  }
}

class CudaTextbookCg final : public TextbookCg {
 public:
  CudaTextbookCg(const HostCsr& a, const std::string& preconditioner, int block, Stream& stream)
      : stream_(stream), n_(static_cast<int>(a.rows)), sparse_(stream.device()) {
    const DeviceGuard guard(stream.device());
    std::vector<std::int32_t> row_ptr, col_idx;
    for (const auto at : a.row_ptr) row_ptr.push_back(static_cast<std::int32_t>(at));
    for (const auto column : a.col_idx) col_idx.push_back(static_cast<std::int32_t>(column));
    row_ptr_ = upload<std::int32_t>(row_ptr, stream), col_idx_ = upload<std::int32_t>(col_idx, stream);
    values_ = upload<double>(std::span(a.values.data(), a.values.size()), stream);
    for (Buffer* vector : {&x_, &r_, &p_, &q_, &z_}) *vector = Buffer(stream.device(), sizeof(double) * a.row_ptr.size());
    const std::vector<double> ones(static_cast<std::size_t>(n_), 1);
    b_ = upload<double>(ones, stream);
    if (preconditioner != "none") {
      block_ = preconditioner == "jacobi" ? 1 : block;
      std::vector<double> inverses = diagonal_blocks(a, block_);
      const auto size = static_cast<std::size_t>(block_);
      for (std::size_t at = 0; at < inverses.size(); at += size * size)
        invert(std::span(inverses).subspan(at, size * size), size);
      inverses_ = upload<double>(inverses, stream);
    }
    const cudaStream_t native = stream.native();
    cuda::check(cuda::cusparse().SetStream(sparse_.handle, native), "cusparseSetStream");
    cublas::check(blas_.set_stream(dense_.handle, native), "cublasSetStream");
    make_product(static_cast<std::int64_t>(a.col_idx.size()));
  }

  Solved solve(double rtol, std::int64_t most) override {
    const DeviceGuard guard(stream_.device());
    fill_bytes(x_.data(), 0, x_.bytes(), stream_);
    stream_.synchronize();
    Solved solved;
    const Timer timer;
    copy(b_, r_);
    const double of_b = std::sqrt(dot(b_, b_));
    double rr = dot(r_, r_), rz = apply() ? dot(r_, z_) : rr;
    copy(z(), p_);
    for (; solved.iterations < most && std::sqrt(rr) > rtol * of_b; ++solved.iterations) {
      multiply();
      const double alpha = rz / dot(p_, q_);
      add(alpha, p_, x_);
      add(-alpha, q_, r_);
      rr = dot(r_, r_);
      const double before = std::exchange(rz, apply() ? dot(r_, z_) : rr), beta = rz / before;
      cublas::check(blas_.dscal(dense_.handle, n_, &beta, p_.as<double>(), 1), "cublasDscal");
      add(1, z(), p_);
    }
    stream_.synchronize();
    solved.seconds = timer.seconds();
    solved.residual = std::sqrt(rr) / of_b;
    return solved;
  }

 private:
  void make_product(std::int64_t nnz) {
    cuda::check(cuda::cusparse().CreateCsr(&a_.handle, n_, n_, nnz, row_ptr_.data(), col_idx_.data(), values_.data(),
                                           CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F),
                "cusparseCreateCsr");
    cuda::check(cuda::cusparse().CreateDnVec(&of_p_.handle, n_, p_.data(), CUDA_R_64F), "cusparseCreateDnVec");
    cuda::check(cuda::cusparse().CreateDnVec(&of_q_.handle, n_, q_.data(), CUDA_R_64F), "cusparseCreateDnVec");
    std::size_t bytes = 0;
    cuda::check(cuda::cusparse().SpMV_bufferSize(sparse_.handle, kPlain, &one_, a_.handle, of_p_.handle, &zero_,
                                                 of_q_.handle, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes),
                "cusparseSpMV_bufferSize");
    buffer_ = Buffer(stream_.device(), bytes);
    cuda::check(cuda::cusparse().SpMV_preprocess(sparse_.handle, kPlain, &one_, a_.handle, of_p_.handle, &zero_,
                                                 of_q_.handle, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, buffer_.data()),
                "cusparseSpMV_preprocess");
  }
  void multiply() {
    cuda::check(cuda::cusparse().SpMV(sparse_.handle, kPlain, &one_, a_.handle, of_p_.handle, &zero_, of_q_.handle,
                                      CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, buffer_.data()),
                "cusparseSpMV");
  }
  double dot(const Buffer& u, const Buffer& v) {
    double result = 0;
    cublas::check(blas_.ddot(dense_.handle, n_, u.as<double>(), 1, v.as<double>(), 1, &result), "cublasDdot");
    return result;
  }
  void add(double factor, const Buffer& from, const Buffer& to) {
    cublas::check(blas_.daxpy(dense_.handle, n_, &factor, from.as<double>(), 1, to.as<double>(), 1), "cublasDaxpy");
  }
  void copy(const Buffer& from, const Buffer& to) {
    cublas::check(blas_.dcopy(dense_.handle, n_, from.as<double>(), 1, to.as<double>(), 1), "cublasDcopy");
  }
  /// z = M·r. False without a preconditioner: then z is r.
  bool apply() {
    if (block_ == 0) return false;
    if (block_ == 1)
      cublas::check(blas_.ddgmm(dense_.handle, CUBLAS_SIDE_LEFT, n_, 1, r_.as<double>(), n_, inverses_.as<double>(), 1,
                                z_.as<double>(), n_),
                    "cublasDdgmm");
    else
      cublas::check(blas_.dgemm_strided_batched(dense_.handle, CUBLAS_OP_T, CUBLAS_OP_N, block_, 1, block_, &one_,
                                                inverses_.as<double>(), block_, block_ * block_, r_.as<double>(), block_,
                                                block_, &zero_, z_.as<double>(), block_, block_, n_ / block_),
                    "cublasDgemmStridedBatched");
    return true;
  }
  const Buffer& z() const { return block_ == 0 ? r_ : z_; }

  static constexpr auto kPlain = CUSPARSE_OPERATION_NON_TRANSPOSE;
  const double one_ = 1, zero_ = 0;
  const cublas::Functions& blas_ = cublas::functions();
  Stream& stream_;
  int n_, block_ = 0;  ///< block_: rows of a block of the preconditioner; 0 without one
  cuda::CusparseLibrary sparse_;
  cublas::Handle dense_;
  Buffer row_ptr_, col_idx_, values_, inverses_, buffer_, b_, x_, r_, p_, q_, z_;
  Matrix a_;
  Vector of_p_, of_q_;
};

}  // namespace

std::unique_ptr<TextbookCg> make_textbook_cg(const HostCsr& a, const std::string& preconditioner, int block,
                                             Stream& stream) {
  if (stream.device().backend != Backend::cuda) return nullptr;
  return std::make_unique<CudaTextbookCg>(a, preconditioner, block, stream);
}

}  // namespace shardmat::tools
