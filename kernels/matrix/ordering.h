// Orders of rows. A permutation is written new -> old: permutation[new_row] = old_row.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/host_vector.h"
#include "kernels/base/progress.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// Orders rows by descending nonzero count; rows of equal count keep their order (paper: Okada, Okamoto, Imamura, "sort rows
/// by nonzero count"). row_ptr has rows + 1 entries and may start at any value.
HostVector<std::int64_t> order_by_row_length(std::span<const std::int64_t> row_ptr);

/// Orders the rows of a square matrix so that entries lie near the diagonal: reverse Cuthill-McKee on the pattern of A + Aᵀ.
/// The order depends only on the pattern. Takes 40 bytes a row and 8 bytes a nonzero besides the matrix. Throws
/// Error(resources) before allocating more memory than there is, and for 2^31 or more rows; Error(usage) if the matrix is
/// not square.
HostVector<std::int64_t> order_by_rcm(const CsrView& matrix, const Progress& progress = {});

/// inverse[permutation[i]] = i. Throws Error(input) if `permutation` is not a permutation of 0 … n-1.
HostVector<std::int64_t> invert_permutation(std::span<const std::int64_t> permutation);

}  // namespace shardmat
