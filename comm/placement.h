// Which device each rank runs on.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/device.h"

namespace shardmat {

/// One rank's place, known on all ranks.
struct RankPlace {
  std::string host;
  std::string device;  ///< "NVIDIA H200", or the CPU's model
  std::string id;      ///< PCI bus id; empty on the host backend
};

struct Placement {
  Device device;                  ///< this rank's
  std::vector<RankPlace> ranks;   ///< all ranks, in rank order
};

/// What the user asked for.
enum class BackendChoice { automatic, host, cuda };

/// Picks the device of each rank by its local rank (or the only visible one). Collective. Throws the same error on all ranks:
/// Error(resources) with the remedy if CUDA was asked for and there is none, if two ranks would share a GPU ("4 ranks on
/// host a but 2 GPUs: …"), or if P > 1 on GPUs in a build without NCCL. `automatic` takes CUDA only if every rank has a device.
Placement place_ranks(Communicator& communicator, BackendChoice choice);

}  // namespace shardmat
