// Which device each rank runs on.
// Ownership: values. Collective: place_ranks() and share_cores().
// Threads: one thread of each rank. Nothing is set for the calling thread: neither its device nor its OpenMP threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/device.h"

namespace shardmat {

enum class Isa;

/// One rank's place, known on all ranks.
struct RankPlace {
  std::string host;
  std::string device;  ///< "NVIDIA H200", or the CPU's model and the instruction set: "AMD EPYC, avx2"
  std::string id;      ///< PCI bus id; empty on the host backend
  std::string uuid;    ///< UUID of the device; empty on the host backend
};

struct Placement {
  Device device;                 ///< this rank's device
  std::vector<RankPlace> ranks;  ///< all ranks, in rank order
  std::string why;               ///< why this backend, for the report
  int threads = 1;               ///< host threads that this rank should take
  Isa isa{};                     ///< of host kernels; the same on all ranks, so that all form the same bits
};

enum class BackendChoice { automatic, host, cuda };
/// Parses auto, host or cuda. Throws Error(usage) for any other word.
BackendChoice parse_backend_choice(std::string_view word);

/// The cores of a host and the ranks that share them.
struct CoreShare {
  int threads = 1;  ///< this rank's share of the cores, at least 1
  int cores = 1;    ///< cores that all ranks of the host may use together
  int ranks = 1;    ///< ranks on the host
};
/// Collective over the ranks that share the cores.
CoreShare share_cores(Communicator& communicator);

/// Picks the device of each rank by its local rank (or the only visible one), and its number of host threads: `threads`, or
/// if that is 0, OMP_NUM_THREADS, else this rank's share of the cores. The instruction set is the highest that all ranks
/// have and SHARDMAT_ISA allows. Work for a context takes both by ThreadCount (kernels/base/parallel.h) and IsaScope
/// (kernels/base/isa.h). `automatic` takes CUDA only if every rank has a device.
/// Collective. Throws the same error on all ranks: Error(resources), with the remedy, if CUDA was asked for and there is no
/// GPU; if two ranks would share a GPU ("4 ranks on host a but 2 GPUs: …"); and for several ranks on GPUs in a build without
/// NCCL.
Placement place_ranks(Communicator& communicator, BackendChoice choice, int threads = 0);

/// True if this build can make several GPUs work together.
bool built_with_nccl();

/// Throws Error(resources) if two ranks have the same device of the same host. `visible` is the number of devices that each
/// rank sees.
void require_own_devices(const std::vector<RankPlace>& ranks, const std::vector<int>& visible);

/// Number of threads for this rank: all CPUs that it may run on if the launcher bound each rank to its own CPUs, else a
/// share of them. `masks` are the CPU sets (bit i of word i/64) of the ranks on this host; masks[mine] is the set of this
/// rank; `usable` is its number of cores within the cgroup's quota.
int threads_for_rank(const std::vector<std::vector<std::uint64_t>>& masks, std::size_t mine, int usable);
/// Number of cores that the ranks of this host may use together, at least 1. Arguments as for threads_for_rank().
int cores_of_ranks(const std::vector<std::vector<std::uint64_t>>& masks, std::size_t mine, int usable);

}  // namespace shardmat
