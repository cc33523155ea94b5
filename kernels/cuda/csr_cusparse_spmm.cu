// cuSPARSE's SpMM on CSR, the algorithm pinned, preprocessed, one buffer a plan. The library reads up to 16 bytes at once
// from wherever X and Y begin, so that operands at odd addresses, or with such leading dimensions, go through copies.
#include <cstdint>

#include "kernels/base/error.h"
#include "kernels/cuda/cusparse_plan.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_major_plan.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/csr_spmm.h"

namespace shardmat {
namespace {

using cuda::check;
using cuda::cuda_type;
using cuda::Scalar;
using Matrix = cuda::CusparseObject<cusparseSpMatDescr_t, &cuda::CusparseCalls::DestroySpMat>;
using DenseMatrix = cuda::CusparseObject<cusparseDnMatDescr_t, &cuda::CusparseCalls::DestroyDnMat>;

constexpr auto kPlain = CUSPARSE_OPERATION_NON_TRANSPOSE;

cusparseSpMMAlg_t algorithm_of(const Policy& policy) {
  switch (policy.at("algorithm")) {
    case 1:
      return CUSPARSE_SPMM_CSR_ALG1;
    case 2:
      return CUSPARSE_SPMM_CSR_ALG2;
    case 3:
      return CUSPARSE_SPMM_CSR_ALG3;
    default:
      throw Error(ErrorKind::usage, "csr_cusparse: algorithm must be 1, 2 or 3 (CUSPARSE_SPMM_CSR_ALG…)");
  }
}

class CsrCusparseSpmmPlan final : public SpmmPlan {
 public:
  CsrCusparseSpmmPlan(std::shared_ptr<CsrStorage> a, const RightHandSides& rhs, cusparseSpMMAlg_t algorithm, Stream& stream)
      : SpmmPlan(a, rhs),
        a_(std::move(a)),
        algorithm_(algorithm),
        type_(cuda_type(a_->type)),
        sum_type_(cuda_type(sum_type(a_->type))),
        library_(a_->device) {
    const DeviceGuard guard(a_->device);
    check(cuda::cusparse().SetStream(library_.handle, stream.native()), "cusparseSetStream");
    check(cuda::cusparse().CreateCsr(&matrix_.handle, a_->rows, a_->cols, a_->nnz, a_->row_ptr.data(), a_->col_idx.data(),
                                     a_->values.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                     type_),
          "cusparseCreateCsr");
    // The library sizes its buffer by sizes and orders; the memory only needs to be there.
    const auto shortest = [&](DenseOrder order, std::int64_t rows) {
      return order == DenseOrder::row_major ? rhs.count : rows;
    };
    DenseMatrix x, y;
    create(x, a_->cols, shortest(rhs.x, a_->cols), a_->values.data(), rhs.x, type_);
    create(y, a_->rows, shortest(rhs.y, a_->rows), a_->values.data(), rhs.y, sum_type_);
    const Scalar one(1, sum_type_), zero(0, sum_type_);
    std::size_t bytes = 0;
    check(cuda::cusparse().SpMM_bufferSize(library_.handle, kPlain, kPlain, one.data(), matrix_.handle, x.handle,
                                           zero.data(), y.handle, sum_type_, algorithm_, &bytes),
          "cusparseSpMM_bufferSize");
    workspace_ = Buffer(a_->device, bytes + 16);
    check(cuda::cusparse().SpMM_preprocess(library_.handle, kPlain, kPlain, one.data(), matrix_.handle, x.handle,
                                           zero.data(), y.handle, sum_type_, algorithm_, workspace_.data()),
          "cusparseSpMM_preprocess");
    stream.synchronize();
  }

  /// Long rows differ from run to run with every algorithm.
  bool reproducible() const override { return false; }
  std::int64_t extra_bytes() const override {
    return static_cast<std::int64_t>(workspace_.bytes()) + (copies_ ? copies_->bytes() : 0) +
           (of_copies_ ? of_copies_->extra_bytes() : 0);
  }

 private:
  void create(DenseMatrix& matrix, std::int64_t rows, std::int64_t leading, void* data, DenseOrder order,
              cudaDataType type) const {
    check(cuda::cusparse().CreateDnMat(&matrix.handle, rows, right_hand_sides().count, leading, data, type,
                                       order == DenseOrder::row_major ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL),
          "cusparseCreateDnMat");
  }

  bool is_aligned(const void* data, std::int64_t leading, ValueType type) const {
    const int width = dense::width_for(right_hand_sides().count, size_of(type));
    return reinterpret_cast<std::uintptr_t>(data) % (static_cast<std::size_t>(width) * size_of(type)) == 0 &&
           leading % width == 0;
  }

  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
           Stream& stream) const override {
    if (!is_aligned(x, ldx, a_->type) || !is_aligned(y, ldy, sum_type(a_->type)))
      return run_on_copies(alpha, x, ldx, beta, y, ldy, stream);
    const DeviceGuard guard(stream.device());
    DenseMatrix of_x, of_y;
    create(of_x, a_->cols, ldx, const_cast<void*>(x), right_hand_sides().x, type_);
    create(of_y, a_->rows, ldy, y, right_hand_sides().y, sum_type_);
    check(cuda::cusparse().SetStream(library_.handle, stream.native()), "cusparseSetStream");
    const Scalar a(alpha, sum_type_), b(beta, sum_type_);
    check(cuda::cusparse().SpMM(library_.handle, kPlain, kPlain, a.data(), matrix_.handle, of_x.handle, b.data(),
                                of_y.handle, sum_type_, algorithm_, workspace_.data()),
          "cusparseSpMM");
  }

  void run_on_copies(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
                     Stream& stream) const {
    dispatch_operands(a_->type, [&](auto of_a, auto of_sum) {
      using A = typename decltype(of_a)::type;
      using T = typename decltype(of_sum)::type;
      if (!copies_) copies_ = std::make_unique<cuda::DenseCopies>(*a_, right_hand_sides(), dense::kWidth<A>);
      copies_->with_rows<T, A>(alpha, x, ldx, beta, y, ldy, stream, [&](const dense::Rows<T, A>& v) {
        if (!of_copies_)
          of_copies_ = std::make_unique<CsrCusparseSpmmPlan>(a_, RightHandSides{v.columns}, algorithm_, stream);
        of_copies_->run(v.alpha, v.x, v.x_bytes / static_cast<int>(sizeof(A)), v.beta, v.y,
                        v.y_bytes / static_cast<int>(sizeof(T)), stream);
      });
    });
  }

  std::shared_ptr<CsrStorage> a_;
  cusparseSpMMAlg_t algorithm_;
  mutable std::unique_ptr<cuda::DenseCopies> copies_;       ///< made when they are needed
  mutable std::unique_ptr<CsrCusparseSpmmPlan> of_copies_;  ///< likewise
  cudaDataType type_, sum_type_;
  cuda::CusparseLibrary library_;
  Matrix matrix_;
  Buffer workspace_;
};

}  // namespace

std::vector<Policy> csr_cusparse_spmm_policies(const Storage&, const RightHandSides&) {
  return {{{"algorithm", 2}}, {{"algorithm", 3}}, {{"algorithm", 1}}};
}

bool csr_cusparse_spmm_supports(const Storage& storage, const RightHandSides& rhs) {
  // The library wants offsets and columns of one width; its algorithm 3 leaves a single column of Y as it was.
  return !static_cast<const CsrStorage&>(storage).wide_offsets && !cuda::is_empty(storage) && rhs.count > 1;
}

std::unique_ptr<SpmmPlan> make_csr_cusparse_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                 const Policy& policy, Stream& stream) {
  return std::make_unique<CsrCusparseSpmmPlan>(std::static_pointer_cast<CsrStorage>(std::move(storage)), rhs,
                                               algorithm_of(policy), stream);
}

}  // namespace shardmat
