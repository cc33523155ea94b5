// Orders of rows. A permutation is written new -> old: permutation[new_row] = old_row.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/host_vector.h"
#include "kernels/base/progress.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// Rows by descending nonzero count, equal counts in their old order (paper: Okada, Okamoto, Imamura, "sort rows by
/// nonzero count"). row_ptr has rows + 1 entries and may start at any value.
HostVector<std::int64_t> order_by_row_length(std::span<const std::int64_t> row_ptr);

/// The rows of a square matrix so that entries lie near the diagonal: reverse Cuthill-McKee on the pattern of A + Aᵀ. The
/// same for the same pattern. 40 bytes a row and 8 a nonzero beside the matrix; throws Error(resources) before taking more
/// than there is, or for 2^31 rows and more, Error(usage) unless the matrix is square.
HostVector<std::int64_t> order_by_rcm(const CsrView& matrix, const Progress& progress = {});

/// inverse[permutation[i]] = i. Throws Error(input) if `permutation` is not a permutation of 0 … n-1.
HostVector<std::int64_t> invert_permutation(std::span<const std::int64_t> permutation);

}  // namespace shardmat
