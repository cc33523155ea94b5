// Coordinates: row, column and value of every nonzero, sorted by rows. No padding, and long rows cause no imbalance. But
// each nonzero's product is added to y in memory, so the format suits matrices with very few nonzeros a row.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/device.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

/// The part of a format that is stored as coordinates.
struct CooEntries {
  std::int64_t count = 0;
  Buffer row;      ///< count int32, ascending
  Buffer col_idx;  ///< count int32
  Buffer values;   ///< count values of the storage's type
};

struct CooStorage final : Storage {
  std::vector<const Buffer*> value_arrays() const override { return {&entries.values}; }

  CooEntries entries;
};

/// (8 + value)·nnz. Throws Error(resources) from 2^31 rows on.
std::int64_t coo_bytes(ConversionInput& input, const Policy& layout);
std::shared_ptr<Storage> convert_coo(ConversionInput& input, const Policy& layout);
void update_coo(Storage& storage, ConversionInput& input);

std::unique_ptr<Plan> make_coo_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_coo(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
