// Sliced ELL through cuSPARSE, on the arrays of the format sell.
#include "kernels/cuda/cusparse_plan.h"
#include "kernels/formats/sell.h"

namespace shardmat {

std::unique_ptr<Plan> make_sell_cusparse(std::shared_ptr<Storage> storage, const Policy&, Stream& stream) {
  if (cuda::is_empty(*storage)) return make_sell(std::move(storage), Policy{{"block_size", 128}}, stream);
  const auto& a = static_cast<const SellStorage&>(*storage);
  const auto create = [&a](cusparseSpMatDescr_t* matrix, cudaDataType type) {
    return cuda::cusparse().CreateSlicedEll(matrix, a.rows, a.cols, a.nnz, a.pattern->slice_ptr.back(), a.pattern->slice,
                                            a.slice_ptr.data(), a.col_idx.data(), a.values.data(), CUSPARSE_INDEX_32I,
                                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type);
  };
  return cuda::make_cusparse_plan(std::move(storage), CUSPARSE_SPMV_SELL_ALG1, false, create, stream);
}

}  // namespace shardmat
