// One rank finds out what is in an HDF5 file of another program, and tells the others, before each opens the file.
#pragma once

#include <optional>
#include <string>

#include "comm/communicator.h"
#include "partition/hdf5/input.h"

namespace shardmat {

/// Collective; the same error on all ranks. Rank 0 runs the helper program (hdf5/describe.h) if the file needs it; opening
/// the file with these objects then needs no helper on any rank. Nothing happens without an input.
void describe_on_all_ranks(const std::optional<Hdf5Input>& input, Communicator& communicator);

}  // namespace shardmat
