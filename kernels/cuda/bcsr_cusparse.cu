// Blocked CSR through cuSPARSE: the generic SpMV where it has blocks (CUDA 13.0 update 1), bsrmv before.
#include "kernels/cuda/cusparse_plan.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/bcsr.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

#if CUSPARSE_VERSION >= 12603

std::unique_ptr<Plan> make_plan_of_library(std::shared_ptr<Storage> storage, Stream& stream) {
  const auto& a = static_cast<const BcsrStorage&>(*storage);
  const auto create = [&a](cusparseSpMatDescr_t* matrix, cudaDataType type) {
    return cuda::cusparse().CreateBsr(matrix, a.block_rows, a.block_cols, a.blocks(), a.block(), a.block(),
                                      a.block_ptr.data(), a.block_col.data(), a.values.data(), CUSPARSE_INDEX_32I,
                                      CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type, CUSPARSE_ORDER_ROW);
  };
  return cuda::make_cusparse_plan(std::move(storage), CUSPARSE_SPMV_BSR_ALG1, false, create, stream);
}

#else

using MatrixDescription = cuda::CusparseObject<cusparseMatDescr_t, &cuda::CusparseCalls::DestroyMatDescr>;

void bsrmv(cusparseHandle_t library, cusparseMatDescr_t description, const BcsrStorage& a, const Operands<double>& p) {
  cuda::check(cuda::cusparse().Dbsrmv(library, CUSPARSE_DIRECTION_ROW, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                      static_cast<int>(a.block_rows), static_cast<int>(a.block_cols),
                                      static_cast<int>(a.blocks()), &p.alpha, description, a.values.as<double>(),
                                      a.block_ptr.as<int>(), a.block_col.as<int>(), a.block(), p.x, &p.beta, p.y),
              "cusparseDbsrmv");
}

void bsrmv(cusparseHandle_t library, cusparseMatDescr_t description, const BcsrStorage& a, const Operands<float>& p) {
  cuda::check(cuda::cusparse().Sbsrmv(library, CUSPARSE_DIRECTION_ROW, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                      static_cast<int>(a.block_rows), static_cast<int>(a.block_cols),
                                      static_cast<int>(a.blocks()), &p.alpha, description, a.values.as<float>(),
                                      a.block_ptr.as<int>(), a.block_col.as<int>(), a.block(), p.x, &p.beta, p.y),
              "cusparseSbsrmv");
}

std::unique_ptr<Plan> make_plan_of_library(std::shared_ptr<Storage> storage, Stream&) {
  const auto library = std::make_shared<cuda::CusparseLibrary>(storage->device);
  const auto description = std::make_shared<MatrixDescription>();
  cuda::check(cuda::cusparse().CreateMatDescr(&description->handle), "cusparseCreateMatDescr");
  return typed_plan<BcsrStorage>(
      std::move(storage), [=]<class T>(const BcsrStorage& a, const Operands<T>& p, Stream& stream) {
        const DeviceGuard guard(stream.device());
        cuda::check(cuda::cusparse().SetStream(library->handle, stream.native()), "cusparseSetStream");
        bsrmv(library->handle, description->handle, a, p);
      });
}

#endif

}  // namespace

std::unique_ptr<Plan> make_bcsr_cusparse(std::shared_ptr<Storage> storage, const Policy&, Stream& stream) {
  if (cuda::is_empty(*storage))
    return make_bcsr(std::move(storage), Policy{{"threads_per_block_row", 8}, {"block_size", 128}}, stream);
  return make_plan_of_library(std::move(storage), stream);
}

}  // namespace shardmat
