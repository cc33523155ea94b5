// Compressed sparse rows with 32-bit columns and the narrowest row offsets that fit, and the kernels for this format.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

struct CsrStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&values}; }

  bool wide_offsets = false;  ///< row_ptr holds int64 instead of int32 (nnz near 2^31 or more)
  Buffer row_ptr;             ///< rows + 1 offsets
  Buffer col_idx;             ///< nnz int32
  Buffer values;              ///< nnz values of `type`
};

/// offset·(rows + 1) + (4 + value)·nnz.
std::int64_t csr_bytes(ConversionInput& input, const Policy& layout);
/// csr_bytes() without the arrays that the storage shares with the matrix.
std::int64_t csr_bytes_to_allocate(ConversionInput& input);
/// On the host, the storage keeps columns and values of a matrix with an owner (CsrView::owner), if they have the widths of
/// the storage.
std::shared_ptr<Storage> convert_csr(ConversionInput& input, const Policy& layout);
void update_csr(Storage& storage, ConversionInput& input);

/// The NT formula of Okada, Okamoto and Imamura (their reference 1): max(1, min(32, 2^floor(log2(nnz / rows)))).
int threads_per_row_by_formula(const RowStatistics& rows);

std::vector<Policy> csr_host_policies(const RowStatistics& rows);
double csr_host_cost(ConversionInput& input, const Policy& layout);
std::unique_ptr<Plan> make_csr_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

std::vector<Policy> csr_vector_policies(const RowStatistics& rows);
/// A SumsInOrder, also of the kernel for several right-hand sides, in an order of its own: 8 threads a row add the same
/// shares.
bool csr_vector_in_order(ValueType type, const Policy& layout, const Policy& policy);
std::unique_ptr<Plan> make_csr_vector(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

std::vector<Policy> csr_balanced_policies(const RowStatistics& rows);
std::unique_ptr<Plan> make_csr_balanced(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

std::vector<Policy> csr_segmented_policies(const RowStatistics& rows);
bool csr_segmented_supports(const Storage& storage);
/// A SumsInOrder: that of csr_balanced_spmm_in_order(), too.
bool csr_segmented_in_order(ValueType type, const Policy& layout, const Policy& policy);
std::unique_ptr<Plan> make_csr_segmented(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

std::vector<Policy> csr_scalar_policies(const RowStatistics& rows);
std::unique_ptr<Plan> make_csr_scalar(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

std::vector<Policy> csr_cusparse_policies(const RowStatistics& rows);
bool csr_cusparse_supports(const Storage& storage);
std::unique_ptr<Plan> make_csr_cusparse(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
