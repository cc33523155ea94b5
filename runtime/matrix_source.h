// From what a user types to rows: a shard file, or a generator's specification that needs no file.
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
};

/// How the rows were sorted before, for the report: "no", or how in the file.
std::string order_text(const MatrixSource& source);

/// Collective; the same error on all ranks. A file that is a matrix but no shard file is refused with the command that
/// makes one. allow_nonfinite: as in ShardFile::open().
MatrixSource open_matrix(const std::string& argument, Communicator& communicator, bool allow_nonfinite = false);

}  // namespace shardmat
