// Compressed sparse columns: each entry of x is read once, but columns add to y at scattered rows. The format of
// column-oriented programs, here for comparison.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

struct CscStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&values}; }

  Buffer col_ptr;  ///< cols + 1 int64 offsets
  Buffer row_idx;  ///< nnz int32, ascending in each column
  Buffer values;   ///< nnz values of `type`
};

/// 8·(cols + 1) + (4 + value)·nnz. Throws Error(resources) from 2^31 rows on.
std::int64_t csc_bytes(ConversionInput& input, const Policy& layout);
/// Like update_csc(), takes 12 bytes of host memory a nonzero while it runs.
std::shared_ptr<Storage> convert_csc(ConversionInput& input, const Policy& layout);
void update_csc(Storage& storage, ConversionInput& input);

std::unique_ptr<Plan> make_csc_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

std::vector<Policy> csc_policies(const RowStatistics& rows);
std::unique_ptr<Plan> make_csc(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
