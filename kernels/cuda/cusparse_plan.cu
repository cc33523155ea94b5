#include "kernels/cuda/cusparse_plan.h"

#include "kernels/cuda/launch.h"

namespace shardmat::cuda {
namespace {

using Matrix = CusparseObject<cusparseSpMatDescr_t, &CusparseCalls::DestroySpMat>;
using Vector = CusparseObject<cusparseDnVecDescr_t, &CusparseCalls::DestroyDnVec>;

class CusparsePlan final : public Plan {
 public:
  CusparsePlan(std::shared_ptr<Storage> storage, cusparseSpMVAlg_t algorithm, bool reproducible, const CreateMatrix& create,
               Stream& stream)
      : Plan(storage),
        storage_(std::move(storage)),
        algorithm_(algorithm),
        reproducible_(reproducible),
        type_(cuda_type(storage_->type)),
        library_(storage_->device) {
    const DeviceGuard guard(storage_->device);
    check(cusparse().SetStream(library_.handle, stream.native()), "cusparseSetStream");
    check(create(&matrix_.handle, type_), "cusparseCreate of the matrix");
    // The vectors' memory is set before each product; until then they only need to be there.
    const Buffer x(storage_->device, static_cast<std::size_t>(storage_->cols) * size_of(storage_->type));
    const Buffer y(storage_->device, static_cast<std::size_t>(storage_->rows) * size_of(storage_->type));
    check(cusparse().CreateDnVec(&x_.handle, storage_->cols, x.data(), type_), "cusparseCreateDnVec");
    check(cusparse().CreateDnVec(&y_.handle, storage_->rows, y.data(), type_), "cusparseCreateDnVec");
    const Scalar one(1, type_), zero(0, type_);
    std::size_t bytes = 0;
    check(cusparse().SpMV_bufferSize(library_.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, one.data(), matrix_.handle,
                                     x_.handle, zero.data(), y_.handle, type_, algorithm_, &bytes),
          "cusparseSpMV_bufferSize");
    workspace_ = Buffer(storage_->device, bytes + 16);  // never null: CUDA 12.0 to 12.3 refuse that
#if CUSPARSE_VERSION >= 12400
    // Of no effect for other formats.
    if (algorithm_ == CUSPARSE_SPMV_CSR_ALG1 || algorithm_ == CUSPARSE_SPMV_CSR_ALG2)
      check(cusparse().SpMV_preprocess(library_.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, one.data(), matrix_.handle,
                                       x_.handle, zero.data(), y_.handle, type_, algorithm_, workspace_.data()),
            "cusparseSpMV_preprocess");
#endif
    stream.synchronize();
  }

  void multiply(double alpha, const void* x, double beta, void* y, Stream& stream) const override {
    const DeviceGuard guard(stream.device());
    check(cusparse().SetStream(library_.handle, stream.native()), "cusparseSetStream");
    check(cusparse().DnVecSetValues(x_.handle, const_cast<void*>(x)), "cusparseDnVecSetValues");
    check(cusparse().DnVecSetValues(y_.handle, y), "cusparseDnVecSetValues");
    const Scalar a(alpha, type_), b(beta, type_);
    check(cusparse().SpMV(library_.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, a.data(), matrix_.handle, x_.handle, b.data(),
                          y_.handle, type_, algorithm_, workspace_.data()),
          "cusparseSpMV");
  }

  bool reproducible() const override { return reproducible_; }

 private:
  std::shared_ptr<Storage> storage_;
  cusparseSpMVAlg_t algorithm_;
  bool reproducible_;
  cudaDataType type_;
  CusparseLibrary library_;
  Matrix matrix_;
  Vector x_, y_;
  Buffer workspace_;
};

}  // namespace

std::unique_ptr<Plan> make_cusparse_plan(std::shared_ptr<Storage> storage, cusparseSpMVAlg_t algorithm, bool reproducible,
                                         const CreateMatrix& create, Stream& stream) {
  return std::make_unique<CusparsePlan>(std::move(storage), algorithm, reproducible, create, stream);
}

}  // namespace shardmat::cuda
