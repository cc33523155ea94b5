// Rows of a matrix file that each rank keeps in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"
#include "partition/source/row_source.h"

namespace shardmat {

/// What one rank keeps of a matrix: the rows of its part, and the row lengths of an even share of all rows. The partitioner
/// reads these lengths.
struct KeptRows {
  std::string name;
  std::int64_t rows = 0;                     ///< of the whole matrix
  std::int64_t begin = 0;                    ///< the part's first row
  HostCsr part;                              ///< the part's rows, with global columns
  std::int64_t share_begin = 0;              ///< the even share's first row
  HostVector<std::int64_t> share_lengths{};  ///< nonzeros of each row of the even share
  std::int64_t node_block_size = 0;          ///< as RowSource::node_block_size()
  RowOrder order = RowOrder::as_source;
  HostVector<std::int64_t> originals{};  ///< original row of each row of the part; empty: the rows are in original order
  std::shared_ptr<const UnknownList> unknowns{};  ///< of all rows, on rank 0; may be null
};

/// Makes a source of these rows. read_rows() and visit_rows() take ranges within this rank's part; row_lengths() takes
/// ranges within the part or within the even share, permutation() within the part. Other ranges throw Error(internal),
/// because another rank has them.
std::unique_ptr<RowSource> make_kept_source(KeptRows kept);

}  // namespace shardmat
