// Rows of a matrix file that each rank keeps in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"
#include "partition/row_source.h"

namespace shardmat {

/// What one rank keeps of a matrix: the rows of its part, and the lengths of its even share of all rows, which the
/// partitioner asks for.
struct KeptRows {
  std::string name;
  std::int64_t rows = 0;                     ///< of the whole matrix
  std::int64_t begin = 0;                    ///< the part's first row
  HostCsr part;                              ///< its rows, with global columns
  std::int64_t share_begin = 0;              ///< the even share's first row
  HostVector<std::int64_t> share_lengths{};  ///< nonzeros of each of its rows
};

/// A source that shows these rows. On this rank read_rows() and visit_rows() take ranges within the part; row_lengths()
/// takes ranges within the part or within the even share. Other ranges throw Error(internal): another rank has them.
std::unique_ptr<RowSource> make_kept_source(KeptRows kept);

}  // namespace shardmat
