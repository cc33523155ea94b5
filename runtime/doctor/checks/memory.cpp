// Host memory, and which cgroup limits it.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/base/cgroup_memory.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "runtime/doctor/check_list.h"

namespace shardmat::doctor {
namespace {

constexpr double kLeastBytesOfRank = 512e6;

std::int64_t kilobytes(const HostFiles& files, const char* key) {
  return 1024 * std::atoll(files.behind("/proc/meminfo", key).c_str());
}

Json look_at_memory(const Viewpoint& viewpoint) {
  Json limits = Json::array();
  for (const CgroupMemory& limit : memory_of_cgroups(viewpoint.files.root()))
    limits.push_back({{"cgroup", limit.folder},
                      {"limit_bytes", limit.limit_bytes},
                      {"available_bytes", limit.available_bytes},
                      {"own", limit.own}});
  Json facts{{"total_bytes", kilobytes(viewpoint.files, "MemTotal")}, {"cgroups", limits}};
  if (const std::int64_t available = available_on_host(viewpoint.files.root());
      available != std::numeric_limits<std::int64_t>::max())
    facts["available_bytes"] = available;
  return facts;
}

std::string name_of(const Json& limit) {
  const auto folder = get<std::string>(limit, "cgroup", "");
  return folder.empty() ? "above this container" : folder;
}

void judge_nested(const Gathered& all, const Gathered::Host& host, Findings& findings) {
  const Json& facts = all.facts(host.ranks.front(), "memory");
  auto least = static_cast<double>(std::numeric_limits<std::int64_t>::max()), own = least;
  std::string where;
  for (const Json& limit : get(facts, "cgroups", Json::array())) {
    const auto bytes = get(limit, "limit_bytes", least);
    if (get(limit, "own", true)) own = std::min(own, bytes);
    else if (bytes < least) least = bytes, where = name_of(limit);
  }
  const double total = get(facts, "total_bytes", 0.0);
  if (where.empty() || least >= own || least >= total / 2) return;
  findings.push_back({"nested_memory_limit",
                      fmt::format("the cgroup {} allows {}{}; {}, and the machine has {}", where, human_bytes(least),
                                  on_host(all, host.name),
                                  own > total ? std::string("the cgroup of the ranks, below it, has no limit")
                                              : fmt::format("that of the ranks, below it, allows {}", human_bytes(own)),
                                  human_bytes(total)),
                      "The kernel kills ranks that reach a limit above them, although nothing near them shows it.",
                      "Ask the scheduler for more memory (Slurm's --mem, the pod's limits, MemoryMax= of the systemd "
                      "slice), or use more hosts."});
}

void judge_memory(const Gathered& all, Findings& findings) {
  for (const Gathered::Host& host : all.hosts()) {
    judge_nested(all, host, findings);
    const double share =
        get(all.facts(host.ranks.front(), "memory"), "available_bytes", 1e18) / static_cast<double>(host.ranks.size());
    if (share < kLeastBytesOfRank)
      findings.push_back(
          {"little_memory",
           fmt::format("{} of host memory are available to each rank{}", human_bytes(share), on_host(all, host.name)),
           "MPI, CUDA and NCCL take some hundred MB a rank before the first matrix.",
           "Start fewer ranks, end other programs, or ask for more memory."});
  }
}

void show_memory(const Gathered& all, Rows& rows) {
  rows.emplace_back("host memory", by_host(all, [&](int rank) {
                      const Json& facts = all.facts(rank, "memory");
                      if (get(facts, "total_bytes", 0.0) == 0) return std::string();
                      return fmt::format("{}, {} available", human_bytes(get(facts, "total_bytes", 0.0)),
                                         human_bytes(get(facts, "available_bytes", 0.0)));
                    }));
  rows.emplace_back("cgroup limits", by_rank(all, [&](int rank) {
                      std::string text;
                      for (const Json& limit : get(all.facts(rank, "memory"), "cgroups", Json::array()))
                        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ",
                                            human_bytes(get(limit, "limit_bytes", 0.0)), name_of(limit));
                      return text.empty() ? std::string("none") : text;
                    }));
}

}  // namespace

const Check kMemory{.name = "memory", .title = "Memory", .look = look_at_memory, .judge = judge_memory, .show = show_memory};

}  // namespace shardmat::doctor
