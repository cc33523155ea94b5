// A model of the share of time in which the multiprocessors of a GPU have work.
#pragma once

#include <vector>

namespace shardmat::tools {

/// The share of time in which a multiprocessor has work, mean over `multiprocessors`: blocks are dealt in order,
/// each to the one that is free first; a block takes as long as its bytes. launches[i] has the costs of the blocks of launch
/// i; launches follow each other. 0 without blocks.
double busy_share(const std::vector<std::vector<double>>& launches, int multiprocessors);

}  // namespace shardmat::tools
