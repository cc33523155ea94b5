#include "comm/placement.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>

#include "kernels/base/isa.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {
namespace {

struct CpuMask {
  std::array<std::uint64_t, CPU_SETSIZE / 64> words;
};

CpuMask my_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CpuMask mask{};
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) mask.words[cpu / 64] |= std::uint64_t{1} << cpu % 64;
  }
  return mask;
}

/// Chooses the backend, the same on every rank.
Backend choose_backend(Communicator& communicator, BackendChoice choice, const std::vector<std::string>& hosts,
                       const std::vector<int>& visible, std::string& why) {
  if (choice == BackendChoice::host) {
    why = "asked for";
    return Backend::host;
  }
  const auto without = std::find(visible.begin(), visible.end(), 0);
  if (without == visible.end()) {
    why = choice == BackendChoice::cuda ? "asked for" : "every rank has a GPU";
    return Backend::cuda;
  }
  const auto rank = static_cast<std::size_t>(without - visible.begin());
  const std::string reason = communicator.broadcast(why_no_cuda_device(), static_cast<int>(rank));
  if (choice == BackendChoice::automatic) {
    why = communicator.size() == 1 ? "no GPU: " + reason
                                   : fmt::format("rank {} on host {} has no GPU: {}", rank, hosts[rank], reason);
    return Backend::host;
  }
  throw Error(ErrorKind::resources,
              fmt::format("rank {} on host {} has no CUDA device: {}. Run where GPUs are visible (nvidia-smi, "
                          "CUDA_VISIBLE_DEVICES), or on the host backend",
                          rank, hosts[rank], reason),
              "backend");
}

std::vector<RankPlace> gather_places(Communicator& communicator, const DeviceProperties& mine) {
  const std::vector<std::string> hosts = communicator.all_gather(communicator.host());
  const std::vector<std::string> names = communicator.all_gather(mine.name), ids = communicator.all_gather(mine.id),
                                 uuids = communicator.all_gather(mine.uuid);
  std::vector<RankPlace> places;
  for (std::size_t r = 0; r < hosts.size(); ++r) places.push_back({hosts[r], names[r], ids[r], uuids[r]});
  return places;
}

}  // namespace

int cores_of_ranks(const std::vector<std::vector<std::uint64_t>>& masks, std::size_t mine, int usable) {
  int own = 0, together = 0;
  for (std::size_t w = 0; w < masks[mine].size(); ++w) {
    std::uint64_t any = 0;
    for (const auto& mask : masks) any |= mask[w];
    own += std::popcount(masks[mine][w]);
    together += std::popcount(any);
  }
  return std::max(1, usable < own ? usable : together);  // a quota below the CPU set holds for all ranks together
}

int threads_for_rank(const std::vector<std::vector<std::uint64_t>>& masks, std::size_t mine, int usable) {
  int cpus = 0, sharing = 0;
  for (const std::uint64_t word : masks[mine]) cpus += std::popcount(word);
  for (const auto& mask : masks) {
    bool common = false;
    for (std::size_t w = 0; w < mask.size(); ++w) common = common || (mask[w] & masks[mine][w]) != 0;
    sharing += common ? 1 : 0;
  }
  const int own = cpus / std::max(1, sharing);
  // A quota below the CPU set holds for all ranks of the host together, bound or not.
  const int quota = usable < cpus ? usable / static_cast<int>(masks.size()) : own;
  return std::max(1, std::min(own, quota));
}

void require_own_devices(const std::vector<RankPlace>& ranks, const std::vector<int>& visible) {
  std::map<std::pair<std::string, std::string>, std::size_t> owner;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto [first, fresh] = owner.emplace(std::make_pair(ranks[r].host, ranks[r].uuid), r);
    if (fresh) continue;
    const auto on_host =
        std::count_if(ranks.begin(), ranks.end(), [&](const RankPlace& p) { return p.host == ranks[r].host; });
    if (visible[r] < on_host)
      throw Error(
          ErrorKind::resources,
          fmt::format("{0} ranks on host {1} but {2} GPU{3}: start at most {2} rank{3} there (mpirun -n {2}), or run "
                      "on the host backend",
                      on_host, ranks[r].host, visible[r], visible[r] == 1 ? "" : "s"),
          "backend");
    throw Error(ErrorKind::resources,
                fmt::format("ranks {} and {} on host {} would share GPU {}; let every rank see all GPUs, or each its own "
                            "(CUDA_VISIBLE_DEVICES, Slurm's --gpus-per-task), or run on the host backend",
                            first->second, r, ranks[r].host, ranks[r].id),
                "backend");
  }
}

BackendChoice parse_backend_choice(std::string_view word) {
  if (word == "auto") return BackendChoice::automatic;
  if (word == "host") return BackendChoice::host;
  if (word == "cuda") return BackendChoice::cuda;
  throw Error(ErrorKind::usage, fmt::format("there is no backend '{}'; choose auto, host or cuda", word));
}

CoreShare share_cores(Communicator& communicator) {
  const std::vector<std::string> hosts = communicator.all_gather(communicator.host());
  const std::vector<CpuMask> all = communicator.all_gather(my_cpus());
  std::vector<std::vector<std::uint64_t>> masks;
  std::size_t mine = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (hosts[r] != communicator.host()) continue;
    if (r == static_cast<std::size_t>(communicator.rank())) mine = masks.size();
    masks.emplace_back(all[r].words.begin(), all[r].words.end());
  }
  const int usable = usable_cores();
  return {threads_for_rank(masks, mine, usable), cores_of_ranks(masks, mine, usable), static_cast<int>(masks.size())};
}

Placement place_ranks(Communicator& communicator, BackendChoice choice, int threads) {
  const std::vector<std::string> hosts = communicator.all_gather(communicator.host());
  const CoreShare share = share_cores(communicator);
  share_host_memory(share.ranks);
  const int mine = choice == BackendChoice::host ? 0 : cuda_device_count();
  const std::vector<int> visible = communicator.all_gather(mine);

  Placement placement;
  placement.threads = threads > 0 ? threads : threads_of_environment(share.threads);
  placement.device.backend = choose_backend(communicator, choice, hosts, visible, placement.why);
  const bool on_gpu = placement.device.backend == Backend::cuda;
  if (on_gpu) placement.device.ordinal = communicator.local_rank() % mine;
  placement.isa = static_cast<Isa>(communicator.all_reduce(
      static_cast<int>(communicator.run_agreed([] { return isa_of_environment(); })), Reduction::min));
  const IsaScope of_all_ranks(placement.isa);
  placement.ranks = gather_places(communicator, communicator.run_agreed([&] {
    // The first use of a device is where it shows that it is full, broken or another process's alone.
    const DeviceGuard guard(placement.device);
    available_memory(placement.device);
    return properties(placement.device);
  }));
  if (!on_gpu || communicator.size() == 1) return placement;
  require_own_devices(placement.ranks, visible);
  if (!built_with_nccl())
    throw Error(ErrorKind::resources,
                fmt::format("{} ranks on GPUs need NCCL, which this build does not have. Rebuild where it is installed "
                            "(libnccl-dev, or -DNCCL_ROOT=DIR), run one rank, or run on the host backend",
                            communicator.size()),
                "backend");
  return placement;
}

}  // namespace shardmat
