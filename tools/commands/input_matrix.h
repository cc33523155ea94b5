// From what a user types to rows, for commands of one process: any matrix file, or a generator's specification.
#pragma once

#include <memory>
#include <string>

#include "partition/row_source.h"
#include "partition/shard_file.h"

namespace shardmat::tools {

/// "file.h5, .mtx …" for help texts.
std::string known_suffixes();

struct InputMatrix {
  std::unique_ptr<RowSource> rows;
  const ShardFile* file = nullptr;  ///< `rows` if it is a shard file
  bool in_memory = false;           ///< `rows` shows its own arrays
};

/// A shard file or a generator is streamed; other programs' files are read whole, and with `say` a line tells how fast.
InputMatrix open_input(const std::string& input, bool allow_nonfinite, bool say);

}  // namespace shardmat::tools
