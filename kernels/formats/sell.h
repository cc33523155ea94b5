// SELL-C-σ (Kreutzer, Hager, Wellein, Fehske, Bishop): slices of C rows, each padded to its longest row and stored column by
// column. Rows are sorted by length within windows of σ rows, so that the rows of a slice have about equal lengths. With σ =
// 1 rows are not sorted, and the arrays are those of cuSPARSE's sliced ELL (padding has column -1 and value 0; the last
// slice is padded to C rows).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

/// The position of each row; kept on the host for new values.
struct SellPattern {
  std::int64_t slice = 0;                ///< C, a power of two
  std::int64_t sigma = 0;                ///< 1 or a multiple of C
  HostVector<std::int64_t> slice_ptr;    ///< slices + 1 offsets into the padded arrays
  HostVector<std::int32_t> permutation;  ///< row in each slot, counted from its window; empty with sigma = 1

  std::int64_t slices() const { return static_cast<std::int64_t>(slice_ptr.size()) - 1; }
};

struct SellStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&values}; }

  std::shared_ptr<const SellPattern> pattern;
  bool wide_offsets = false;  ///< slice_ptr holds int64 instead of int32
  Buffer slice_ptr;
  Buffer permutation;  ///< int32, empty with sigma = 1
  Buffer col_idx;      ///< int32, padded
  Buffer values;       ///< padded
};

/// slice=32,sigma=1 comes first if its padding is less than a tenth.
std::vector<Policy> sell_layouts(ConversionInput& input);
std::int64_t sell_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_sell(ConversionInput& input, const Policy& layout);
void update_sell(Storage& storage, ConversionInput& input);

struct CsrStorage;
/// Fills columns and values, which are already allocated, from the same matrix in CSR on the device.
void fill_sell_on_device(SellStorage& sell, const CsrStorage& csr, Stream& stream);

std::unique_ptr<Plan> make_sell_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

std::unique_ptr<Plan> make_sell(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

/// False for sorted rows and for wide offsets.
bool sell_cusparse_supports(const Storage& storage);
/// The cost (cost_model.h); infinite for sorted rows.
double sell_cusparse_cost(ConversionInput& input, const Policy& layout);
std::unique_ptr<Plan> make_sell_cusparse(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
