// Rank 0 finds out what an HDF5 file of another program contains and tells all ranks, before each rank opens the file.
#pragma once

#include <optional>
#include <string>

#include "comm/communicator.h"
#include "partition/hdf5/input.h"

namespace shardmat {

/// Rank 0 runs the helper program (hdf5/describe.h) if the file needs it. Opening the file with `input` then needs no helper
/// on any rank. Does nothing without an input. Collective; the same error on all ranks.
void describe_on_all_ranks(const std::optional<Hdf5Input>& input, Communicator& communicator);

}  // namespace shardmat
