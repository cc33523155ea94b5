// /dev/shm, through which the ranks of a host move what they send.
#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>

#include "kernels/base/text.h"
#include "runtime/doctor/check_list.h"

namespace shardmat::doctor {
namespace {

constexpr double kLeastBytes = 64 << 20, kLeastFreeOfRank = 8 << 20;

Json look_at_shared_memory(const Viewpoint& viewpoint) {
  struct statvfs space {};
  if (statvfs((viewpoint.files.root() + "/dev/shm").c_str(), &space) != 0)
    return {{"not_looked_at", fmt::format("/dev/shm: {}", std::strerror(errno))}};
  return {{"bytes", static_cast<std::int64_t>(space.f_blocks * space.f_frsize)},
          {"free_bytes", static_cast<std::int64_t>(space.f_bavail * space.f_frsize)}};
}

void judge_shared_memory(const Gathered& all, Findings& findings) {
  for (const Gathered::Host& host : all.hosts()) {
    const Json& facts = all.facts(host.ranks.front(), "shared_memory");
    if (!facts.contains("bytes")) continue;
    const double bytes = get(facts, "bytes", 0.0), free = get(facts, "free_bytes", 0.0);
    if (bytes < kLeastBytes || free < kLeastFreeOfRank * static_cast<double>(host.ranks.size()))
      findings.push_back(
          {"small_dev_shm",
           fmt::format("/dev/shm{} has {}, {} of them free", on_host(all, host.name), human_bytes(bytes), human_bytes(free)),
           "MPI and NCCL keep the buffers between ranks of a host there. Where it is full they fail, die of SIGBUS, or take "
           "the network.",
           "docker run --shm-size=1g (or --ipc=host); in Kubernetes an emptyDir of medium Memory at /dev/shm; else remove "
           "old files there."});
  }
}

void show_shared_memory(const Gathered& all, Rows& rows) {
  rows.emplace_back("/dev/shm", by_host(all, [&](int rank) {
                      const Json& facts = all.facts(rank, "shared_memory");
                      if (!facts.contains("bytes")) return std::string();
                      return fmt::format("{}, {} free", human_bytes(get(facts, "bytes", 0.0)),
                                         human_bytes(get(facts, "free_bytes", 0.0)));
                    }));
}

}  // namespace

const Check kSharedMemory{.name = "shared_memory",
                          .title = "Shared memory",
                          .look = look_at_shared_memory,
                          .judge = judge_shared_memory,
                          .show = show_shared_memory};

}  // namespace shardmat::doctor
