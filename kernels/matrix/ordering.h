// Orders of rows. A permutation is written new -> old: permutation[new_row] = old_row.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/host_vector.h"

namespace shardmat {

/// Rows by descending nonzero count, equal counts in their old order (paper: Okada, Okamoto, Imamura, "sort rows by
/// nonzero count"). row_ptr has rows + 1 entries and may start at any value.
HostVector<std::int64_t> order_by_row_length(std::span<const std::int64_t> row_ptr);

/// inverse[permutation[i]] = i. Throws Error(input) if `permutation` is not a permutation of 0 … n-1.
HostVector<std::int64_t> invert_permutation(std::span<const std::int64_t> permutation);

}  // namespace shardmat
