// What the diagonal of a square matrix tells, found in one pass over its rows: on the host, or on a GPU where a copy of them
// lies (formats/kept_upload.h).
//
// Threads: as Stream; on the host, thread_count() of the calling thread.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/base/device.h"
#include "kernels/matrix/csr.h"
#include "kernels/matrix/penalty_rule.h"

namespace shardmat {

struct CsrStorage;

/// Of all rows; infinity, or 0 for `most`, without any.
struct DiagonalExtremes {
  double lowest =
      std::numeric_limits<double>::infinity();             ///< entry on the diagonal, 0 where none is stored; NaN: -infinity
  double least = std::numeric_limits<double>::infinity();  ///< magnitude of such an entry
  double least_not_0 = std::numeric_limits<double>::infinity();  ///< the same, of those that are not 0
  double most = 0;  ///< the same, of rows where it stands above the others (DiagonalAndOthers::above_others())
};

/// `first`: the column of row 0 on the diagonal. `of_rows`: if not null, where to write what each row has.
DiagonalExtremes diagonal_extremes(const CsrView& rows, std::int64_t first, DiagonalAndOthers* of_rows);
/// Of rows in f64 or f32 on a GPU: the same numbers. Waits for the stream.
DiagonalExtremes diagonal_extremes(const CsrStorage& rows, std::int64_t first, Stream& stream);

/// Copies the entries on the diagonal, of the type of the rows, in stream order; 0 where none is stored. REQUIRES: rows in
/// f64 or f32 on a GPU.
void copy_diagonal(const CsrStorage& rows, std::int64_t first, void* to, Stream& stream);

}  // namespace shardmat
