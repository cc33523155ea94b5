// From what a user types to rows: a shard file, a matrix file of another program, or a generator's specification.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "partition/row_source.h"
#include "partition/shard_file.h"

namespace shardmat {

/// A matrix opened on all ranks.
struct MatrixSource {
  std::unique_ptr<RowSource> rows;
  const ShardFile* file = nullptr;  ///< `rows` if it is a shard file
  std::string access;               ///< who reads or makes the rows, for the report
  /// True if each rank has only its own part of the rows (make_kept_source()): then `rows` serves only the ranks of the
  /// communicator that opened it, divided by the method of OpenOptions.
  bool by_part = false;
};

struct OpenOptions {
  bool allow_nonfinite = false;  ///< accept NaN and infinity among the values
  std::string method = "nnz";    ///< partitioner: which rows each rank keeps of a file that is read into memory
  Progress progress{};           ///< of such a file
};

/// How the rows were sorted before, for the report: "no", or how in the file.
std::string order_text(const MatrixSource& source);

/// Collective; the same error on all ranks. Shard files, Binsparse files and generators give any rows to any rank. Other
/// matrix files (.mtx, .mtx.gz, .npz) are read into memory at once: read_on_ranks(). A file that holds no matrix, or more
/// than one, is refused with the command that takes it.
MatrixSource open_matrix(const std::string& argument, Communicator& communicator, const OpenOptions& options = {});

}  // namespace shardmat
