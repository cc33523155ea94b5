// Which ranks work through which: a rank that owns a GPU, or rows on the host, and its feeders, which give it their rows.
//
// Threads: one thread of each rank.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/placement.h"

namespace shardmat {

struct GroupChoice {
  /// False: every rank needs a device of its own.
  bool feeders = true;
  /// Ranks of each host that own rows, on the host backend; 0: all of them. On GPUs each GPU has one owner.
  int owners = 0;
};

/// For every rank the rank that owns its rows: the lowest of its group; itself if it owns rows. A group has consecutive
/// ranks of a host, and groups of a host differ by one rank at most. Without feeders, every rank owns its rows. Collective;
/// throws the same error on all ranks: Error(usage) for `owners` less than 0, or on GPUs.
std::vector<int> owners_of_ranks(Communicator& all, BackendChoice backend, const GroupChoice& choice);

/// The same of what all ranks said. `place[r]`: ranks of the same place share devices, or a host. `groups[r]`: how many
/// groups its place has; the same for all ranks of a place; at least 1.
std::vector<int> owners_of_places(const std::vector<std::string>& place, const std::vector<int>& groups);

}  // namespace shardmat
