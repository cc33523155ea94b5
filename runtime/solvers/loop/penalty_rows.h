// Penalty rows: rows that state a known value, x_i = b_i / a_ii, by a huge number on the diagonal (kernels/matrix/
// penalty_rule.h). A Krylov method cannot work with them: they dominate every norm. A solver takes their values as known,
// and solves for the other unknowns.
//
// Threads: as DistributedMatrix. What is collective says so.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/base/host_vector.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/loop/solver_options.h"

namespace shardmat {

struct PenaltyFindings {
  std::int64_t count = 0;    ///< of all ranks
  double largest_ratio = 0;  ///< of a diagonal to the larger of the other entries of its row and the reference; 0: that is 0
  bool looked = false;       ///< false: nobody looked, or the rows of the matrix are no longer in host memory
  std::string note;          ///< why rows that look like penalty rows are not taken, or why nobody looked; else empty
  HostVector<std::int64_t> rows;  ///< of this rank, by their place in vectors
  HostVector<double> diagonal;    ///< their entries on the diagonal
  // Of the other rows and columns of all ranks; only set if count > 0:
  double magnitudes = 0;
  bool positive_diagonal = true;
};

/// Looks at the present values of a square matrix in f64 or f32. `make_product`: gives a product for one column; called, on
/// all ranks, only if some rows look like penalty rows. Takes 16 bytes of host memory a row, unless a KeptUpload has the
/// rows on a GPU, which tells that there are none. Throws Error(usage) for `known` without such a row. If the host rows were
/// dropped, the note says that nobody looked. Collective.
PenaltyFindings find_penalty_rows(DistributedMatrix& matrix, PenaltyRows choice,
                                  const std::function<const Product&()>& make_product, Stream& stream);

}  // namespace shardmat
