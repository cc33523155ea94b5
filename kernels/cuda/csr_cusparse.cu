// CSR through cuSPARSE, as an alternative and as the yardstick.
#include "kernels/base/error.h"
#include "kernels/cuda/cusparse_plan.h"
#include "kernels/formats/csr.h"

namespace shardmat {

// The library wants offsets and columns of one width.
bool csr_cusparse_supports(const Storage& storage) { return !static_cast<const CsrStorage&>(storage).wide_offsets; }

std::unique_ptr<Plan> make_csr_cusparse(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream) {
  const int algorithm = policy.at("algorithm");
  if (algorithm != 1 && algorithm != 2) throw Error(ErrorKind::usage, "csr_cusparse: algorithm must be 1 or 2");
  if (cuda::is_empty(*storage)) return make_csr_scalar(std::move(storage), Policy{{"block_size", 128}}, stream);
  const auto& a = static_cast<const CsrStorage&>(*storage);
  const auto create = [&a](cusparseSpMatDescr_t* matrix, cudaDataType type) {
    return cuda::cusparse().CreateCsr(matrix, a.rows, a.cols, a.nnz, a.row_ptr.data(), a.col_idx.data(), a.values.data(),
                                      CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type);
  };
  return cuda::make_cusparse_plan(std::move(storage), algorithm == 1 ? CUSPARSE_SPMV_CSR_ALG1 : CUSPARSE_SPMV_CSR_ALG2,
                                  algorithm == 2, create, stream);
}

}  // namespace shardmat
