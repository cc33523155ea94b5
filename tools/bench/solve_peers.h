// Starting the peers of `bench solve`. They are processes of their own that are older than our MPI: mpirun cannot be started
// from one of its ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "tools/bench/peer_program.h"

namespace shardmat::tools {

struct SolvePeers {
  std::unique_ptr<PeerProgram> process;  ///< on rank 0
  std::vector<PeerName> names;           ///< solvers; the same on all ranks
  std::string missing;                   ///< a note why there are none
};

/// Starts the peers on `ranks` ranks. Called before MPI starts. `cpu_clock`: see PeerProgram.
SolvePeers start_solve_peers(int ranks, bool cpu_clock);

/// Replaces this process by mpirun with `ranks` ranks of the same command, and first starts the peers on `peer_ranks` ranks,
/// in an mpirun of their own. 0: without peers. Throws Error(resources).
[[noreturn]] void become_ranks(int ranks, int peer_ranks);
/// True in a rank that become_ranks() started.
bool was_started_by_become_ranks();
/// The peers that become_ranks() started; none if it started none. Collective; the same error on all ranks.
SolvePeers connect_solve_peers(int peer_ranks, Communicator& communicator);

}  // namespace shardmat::tools
