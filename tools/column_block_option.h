// --column-block of the commands that multiply.
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "kernels/base/error.h"
#include "runtime/matrix/distributed_matrix.h"

namespace shardmat {

/// require_column_block() in the words of the command line.
inline void require_column_block_option(std::int64_t rhs, std::int64_t column_block) {
  try {
    require_column_block(rhs, column_block);
  } catch (const Error& error) {
    throw Error(error.kind(),
                fmt::format("--column-block {}: {}{}", column_block, error.what(), rhs == 1 ? "; add --rhs" : ""));
  }
}

}  // namespace shardmat
