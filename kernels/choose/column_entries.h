// Where the entries of each column of a stored matrix are: their rows, and the places of their values. With it every format
// can be multiplied transposed. It has no values: those are read where they lie, also new ones.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/device.h"
#include "kernels/conversion.h"
#include "kernels/plan.h"

namespace shardmat {

/// Belongs to one storage. Not changed once it is made; any thread may read it.
class ColumnEntries {
 public:
  /// `input`: as ValueMap. While this runs, the values of the storage are others; no product may run on them. Takes 16
  /// bytes of host memory a nonzero meanwhile, and what a ValueMap takes. Throws Error(resources) before it allocates, and
  /// from 2^32 places of values on; Error(usage) for a format without a value map.
  ColumnEntries(Storage& storage, ConversionInput& input);

  std::int64_t columns() const { return columns_; }
  std::int64_t nnz() const { return nnz_; }
  /// Device memory: int64[columns + 1].
  const std::int64_t* starts() const { return starts_.as<std::int64_t>(); }
  /// int32[nnz], ascending in each column.
  const std::int32_t* rows() const { return rows_.as<std::int32_t>(); }
  /// uint32[nnz]: counted through all value arrays of the storage, one after another.
  const std::uint32_t* places() const { return places_.as<std::uint32_t>(); }
  /// Device memory: 8 bytes a nonzero and 8 a column.
  std::int64_t bytes() const;

 private:
  std::int64_t columns_ = 0, nnz_ = 0;
  Buffer starts_, rows_, places_;
};

}  // namespace shardmat
