// Which device each rank runs on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/device.h"

namespace shardmat {

/// One rank's place, known on all ranks.
struct RankPlace {
  std::string host;
  std::string device;  ///< "NVIDIA H200", or the CPU's model
  std::string id;      ///< PCI bus id; empty on the host backend
  std::string uuid;    ///< of the device; empty on the host backend
};

struct Placement {
  Device device;                 ///< this rank's
  std::vector<RankPlace> ranks;  ///< all ranks, in rank order
  std::string why;               ///< why this backend, for the report
};

/// What the user asked for.
enum class BackendChoice { automatic, host, cuda };
/// From auto, host or cuda. Throws Error(usage) for any other word.
BackendChoice parse_backend_choice(std::string_view word);

/// The cores of a host and the ranks that share them.
struct CoreShare {
  int threads = 1;  ///< this rank's share of the cores, at least 1
  int cores = 1;    ///< of its host that its ranks may use together
  int ranks = 1;    ///< on its host
};
/// Collective over the ranks that share the cores.
CoreShare share_cores(Communicator& communicator);

/// Picks the device of each rank by its local rank (or the only visible one) and sets the number of host
/// threads of each rank to `threads`, or if that is 0 to this rank's share of the cores. Collective.
/// Throws the same error on all ranks: Error(resources) with the remedy if CUDA was asked for and there is
/// none, if two ranks would share a GPU ("4 ranks on host a but 2 GPUs: …"), or if P > 1 on GPUs in a build
/// without NCCL. `automatic` takes CUDA only if every rank has a device.
Placement place_ranks(Communicator& communicator, BackendChoice choice, int threads = 0);

/// Throws Error(resources) if two ranks have the same device of the same host; `visible` is the number of
/// devices that each rank sees.
void require_own_devices(const std::vector<RankPlace>& ranks, const std::vector<int>& visible);

/// Threads for this rank out of the CPUs it may run on: all of them if the launcher bound each rank to its
/// own, else a share. `masks` are the ranks' CPU sets (bit i of word i/64) on this host, `mine` the index of
/// this rank's, `usable` its cores within the cgroup's quota.
int threads_for_rank(const std::vector<std::vector<std::uint64_t>>& masks, std::size_t mine, int usable);
/// Cores of the host that its ranks may use together, at least 1; arguments as for threads_for_rank().
int cores_of_ranks(const std::vector<std::vector<std::uint64_t>>& masks, std::size_t mine, int usable);

}  // namespace shardmat
