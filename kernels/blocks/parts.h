// What the set-up of multigrid does on a GPU with rows of other ranks: it goes through host memory to them, and comes back.
// Rows and columns of other ranks' nodes, their ghosts, are numbered behind a rank's own (multigrid::Nodes).
//
// Threads: as setup.h. All functions wait for the stream.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/host_vector.h"
#include "kernels/blocks/setup.h"

namespace shardmat::blocks {

/// Rows with the columns of the matrix that they are of.
struct RowsInHostMemory {
  HostVector<std::int64_t> start{0};
  HostVector<std::int32_t> column;
  HostVector<double> value;
};

/// The items `which` of `each` values in double.
Buffer gathered(const Buffer& from, std::int64_t each, std::span<const std::int32_t> which, Stream& stream);
/// The rows `which`.
RowsInHostMemory some_rows(const BlockRows& a, std::span<const std::int32_t> which, Stream& stream);
/// 1 for each column that the first `rows` rows have, else 0.
HostVector<char> used_columns(const BlockRows& a, std::int64_t rows, Stream& stream);
/// number[n] for each n of std::int32_t `numbers`; those below 0 stay.
Buffer renumbered(const Buffer& numbers, std::span<const std::int32_t> number, Stream& stream);
/// The first `rows` rows of `top`, whose column n becomes number[n], and `below`, all with `cols` columns. REQUIRES: number
/// ascends where columns are used.
BlockRows stacked(const BlockRows& top, std::int64_t rows, std::span<const std::int32_t> number,
                  const RowsInHostMemory& below, std::int64_t cols, Stream& stream);
/// The same matrix for vectors with a gap behind the `own` first nodes.
BlockRows with_gap(const BlockRows& a, std::int64_t own, std::int64_t gap, Stream& stream);
/// Rows of blocks of the identity.
BlockRows identity_rows(std::span<const std::int64_t> start, const HostVector<std::int32_t>& column, std::int64_t cols,
                        int size, Stream& stream);

/// Of each ghost the least and the greatest body that is coupled with it, as Bodies::of_node; the greatest is -1 if none is.
struct BodiesAtGhosts {
  HostVector<std::int32_t> least, most;
};
BodiesAtGhosts bodies_at_ghosts(const BlockRows& a, const Couplings& couplings, const Bodies& bodies, Stream& stream);

}  // namespace shardmat::blocks
