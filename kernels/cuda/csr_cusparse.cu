// CSR through cuSPARSE, as an alternative and as the yardstick: generic SpMV with the algorithm pinned, preprocessed, one
// buffer per plan (since CUDA 12.4 a buffer belongs to one matrix and must not be touched between calls).
#include <cusparse.h>

#include <limits>

#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/csr.h"

namespace shardmat {
namespace {

void check(cusparseStatus_t status, const char* call) {
  if (status != CUSPARSE_STATUS_SUCCESS)
    throw Error(status == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES ? ErrorKind::resources : ErrorKind::internal,
                std::string("cuSPARSE: ") + cusparseGetErrorString(status) + " in " + call);
}

class CsrCusparsePlan final : public Plan {
 public:
  CsrCusparsePlan(std::shared_ptr<CsrStorage> a, int algorithm, Stream& stream)
      : Plan(a),
        a_(std::move(a)),
        algorithm_(algorithm == 1 ? CUSPARSE_SPMV_CSR_ALG1 : CUSPARSE_SPMV_CSR_ALG2),
        type_(a_->type == ValueType::f64 ? CUDA_R_64F : CUDA_R_32F) {
    check(cusparseCreate(&library_.handle), "cusparseCreate");
    check(cusparseSetStream(library_.handle, cuda::native(stream)), "cusparseSetStream");
    check(cusparseCreateCsr(&matrix_.handle, a_->rows, a_->cols, a_->nnz, a_->row_ptr.data(), a_->col_idx.data(),
                            a_->values.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type_),
          "cusparseCreateCsr");
    // The vectors' memory is set before each product; until then they only need to be there.
    const Buffer x(a_->device, static_cast<std::size_t>(a_->cols) * size_of(a_->type));
    const Buffer y(a_->device, static_cast<std::size_t>(a_->rows) * size_of(a_->type));
    check(cusparseCreateDnVec(&x_.handle, a_->cols, x.data(), type_), "cusparseCreateDnVec");
    check(cusparseCreateDnVec(&y_.handle, a_->rows, y.data(), type_), "cusparseCreateDnVec");
    const double one[1] = {1}, zero[1] = {0};
    const float onef[1] = {1}, zerof[1] = {0};
    const bool wide = a_->type == ValueType::f64;
    const void* alpha = wide ? static_cast<const void*>(one) : onef;
    const void* beta = wide ? static_cast<const void*>(zero) : zerof;
    std::size_t bytes = 0;
    check(cusparseSpMV_bufferSize(library_.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha, matrix_.handle, x_.handle, beta,
                                  y_.handle, type_, algorithm_, &bytes),
          "cusparseSpMV_bufferSize");
    workspace_ = Buffer(a_->device, bytes + 16);  // never null: CUDA 12.0 to 12.3 refuse that
#if CUSPARSE_VERSION >= 12400
    check(cusparseSpMV_preprocess(library_.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha, matrix_.handle, x_.handle, beta,
                                  y_.handle, type_, algorithm_, workspace_.data()),
          "cusparseSpMV_preprocess");
#endif
    stream.synchronize();
  }

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    if (a_->rows == 0) return;
    check(cusparseSetStream(library_.handle, cuda::native(stream)), "cusparseSetStream");
    check(cusparseDnVecSetValues(x_.handle, const_cast<void*>(x)), "cusparseDnVecSetValues");
    check(cusparseDnVecSetValues(y_.handle, y), "cusparseDnVecSetValues");
    const float alphaf = static_cast<float>(alpha), betaf = static_cast<float>(beta);
    const bool wide = a_->type == ValueType::f64;
    check(cusparseSpMV(library_.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, wide ? static_cast<const void*>(&alpha) : &alphaf,
                       matrix_.handle, x_.handle, wide ? static_cast<const void*>(&beta) : &betaf, y_.handle, type_,
                       algorithm_, workspace_.data()),
          "cusparseSpMV");
  }

  bool reproducible() const override { return algorithm_ != CUSPARSE_SPMV_CSR_ALG1; }

 private:
  std::shared_ptr<CsrStorage> a_;
  cusparseSpMVAlg_t algorithm_;
  cudaDataType type_;
  struct Library {
    cusparseHandle_t handle = nullptr;
    ~Library() {
      if (handle != nullptr) cusparseDestroy(handle);
    }
  } library_;
  struct Matrix {
    cusparseSpMatDescr_t handle = nullptr;
    ~Matrix() {
      if (handle != nullptr) cusparseDestroySpMat(handle);
    }
  } matrix_;
  struct Vector {
    cusparseDnVecDescr_t handle = nullptr;
    ~Vector() {
      if (handle != nullptr) cusparseDestroyDnVec(handle);
    }
  } x_, y_;
  Buffer workspace_;
};

}  // namespace

// The library wants offsets and columns of one width.
bool csr_cusparse_supports(const Storage& storage) { return !static_cast<const CsrStorage&>(storage).wide_offsets; }

std::unique_ptr<Plan> make_csr_cusparse(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream) {
  const int algorithm = policy.at("algorithm");
  if (algorithm != 1 && algorithm != 2) throw Error(ErrorKind::usage, "csr_cusparse: algorithm must be 1 or 2");
  // The library takes no matrix without rows, columns or nonzeros; what is left to do there is y = beta y.
  if (storage->rows == 0 || storage->cols == 0 || storage->nnz == 0)
    return make_csr_scalar(std::move(storage), Policy{{"block_size", 128}}, stream);
  return std::make_unique<CsrCusparsePlan>(std::static_pointer_cast<CsrStorage>(std::move(storage)), algorithm, stream);
}

}  // namespace shardmat
