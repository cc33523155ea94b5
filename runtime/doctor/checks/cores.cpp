// Cores that ranks may use, against the threads that they take.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "comm/placement.h"
#include "kernels/base/cgroup_memory.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "runtime/doctor/check_list.h"

namespace shardmat::doctor {
namespace {

/// Cores that a cgroup's quota allows; 0 without one.
double quota_of(const HostFiles& files, const Cgroup& cgroup) {
  if (cgroup.version == 2) {
    const std::vector<std::string> words = words_of(files.line(cgroup.folder + "/cpu.max"));
    if (words.size() != 2 || words[0] == "max") return 0;
    const double period = std::atof(words[1].c_str());
    return period > 0 ? std::atof(words[0].c_str()) / period : 0;
  }
  const auto quota = files.number(cgroup.folder + "/cpu.cfs_quota_us"),
             period = files.number(cgroup.folder + "/cpu.cfs_period_us");
  return quota && period && *quota > 0 && *period > 0 ? static_cast<double>(*quota) / static_cast<double>(*period) : 0;
}

Json look_at_cores(const Viewpoint& viewpoint) {
  const HostFiles& files = viewpoint.files;
  Json facts{{"online", numbers_of_list(files.line("/sys/devices/system/cpu/online")).size()},
             {"usable", list_of_numbers(numbers_of_list(files.behind("/proc/self/status", "Cpus_allowed_list")))},
             {"asked_threads", threads_of_environment(0)}};
  for (const Cgroup& cgroup : cgroups_of("cpu", files.root())) {
    const double quota = quota_of(files, cgroup);
    if (quota > 0 && quota < get(facts, "quota", 1e9)) facts["quota"] = quota, facts["quota_of"] = cgroup.folder;
  }
  return facts;
}

struct HostCores {
  std::set<int> cores;  ///< of all ranks together
  double quota = 0;     ///< 0: none
  std::string quota_of;
  std::map<int, int> threads;  ///< of each rank
};

std::vector<std::uint64_t> mask_of(const std::vector<int>& cores) {
  std::vector<std::uint64_t> mask(static_cast<std::size_t>(cores.empty() ? 0 : cores.back() / 64) + 1);
  for (const int core : cores) mask[static_cast<std::size_t>(core / 64)] |= std::uint64_t{1} << core % 64;
  return mask;
}

HostCores cores_of(const Gathered& all, const Gathered::Host& host) {
  HostCores found;
  std::vector<std::vector<std::uint64_t>> masks;
  std::size_t most = 1;
  for (const int rank : host.ranks) {
    const Json& facts = all.facts(rank, "cores");
    const std::vector<int> usable = numbers_of_list(get<std::string>(facts, "usable", ""));
    found.cores.insert(usable.begin(), usable.end());
    masks.push_back(mask_of(usable));
    most = std::max(most, masks.back().size());
    if (const double quota = get(facts, "quota", 0.0); quota > 0 && (found.quota == 0 || quota < found.quota))
      found.quota = quota, found.quota_of = get<std::string>(facts, "quota_of", "");
  }
  for (auto& mask : masks) mask.resize(most);
  for (std::size_t i = 0; i < host.ranks.size(); ++i) {
    const Json& facts = all.facts(host.ranks[i], "cores");
    const auto usable = static_cast<int>(numbers_of_list(get<std::string>(facts, "usable", "")).size());
    const int asked = get(facts, "asked_threads", 0);
    found.threads[host.ranks[i]] = asked > 0 ? asked : threads_for_rank(masks, i, usable);
  }
  return found;
}

/// Ranks with the same cores, and these cores.
std::map<std::string, std::vector<int>> ranks_by_cores(const Gathered& all, const Gathered::Host& host) {
  std::map<std::string, std::vector<int>> groups;
  for (const int rank : host.ranks) groups[get<std::string>(all.facts(rank, "cores"), "usable", "")].push_back(rank);
  return groups;
}

constexpr const char* kWhyThreads =
    "Threads and ranks that share a core take turns; at each barrier all wait for the one that has none, and times say "
    "little.";

bool judge_quota(const Gathered& all, const Gathered::Host& host, const HostCores& cores, Findings& findings) {
  int threads = 0;
  for (const auto& [rank, count] : cores.threads) threads += count;
  if (cores.quota == 0 || threads <= cores.quota + 0.25) return false;
  findings.push_back({"fewer_cores_than_threads",
                      fmt::format("{} take{} {}{}, but the cgroup {} allows {:g} cores", ranks_text(host.ranks),
                                  host.ranks.size() == 1 ? "s" : "", human_count(threads, "thread"), on_host(all, host.name),
                                  cores.quota_of, cores.quota),
                      "The kernel stops all of a cgroup's threads for the rest of each period when the quota is used up.",
                      "Ask for more CPUs (Slurm's --cpus-per-task, Kubernetes' limits), or set OMP_NUM_THREADS."});
  return true;
}

void judge_cores(const Gathered& all, Findings& findings) {
  for (const Gathered::Host& host : all.hosts()) {
    const HostCores cores = cores_of(all, host);
    if (cores.cores.empty()) continue;
    if (host.ranks.size() > 1 && cores.cores.size() == 1 && get(all.facts(host.ranks.front(), "cores"), "online", 1) > 1) {
      findings.push_back(
          {"one_core_for_all_ranks",
           fmt::format("all {} ranks{} may use core {} alone", host.ranks.size(), on_host(all, host.name),
                       *cores.cores.begin()),
           kWhyThreads,
           "mpirun --bind-to none, srun --cpu-bind=none, or no taskset around them; in a job, ask for more CPUs."});
      continue;
    }
    if (judge_quota(all, host, cores, findings)) continue;
    for (const auto& [usable, ranks] : ranks_by_cores(all, host)) {
      int threads = 0;
      for (const int rank : ranks) threads += cores.threads.at(rank);
      const auto count = static_cast<int>(numbers_of_list(usable).size());
      if (threads > count)
        findings.push_back(
            {"fewer_cores_than_threads",
             fmt::format("{} take{} {}{} on {} ({})", ranks_text(ranks), ranks.size() == 1 ? "s" : "",
                         human_count(threads, "thread"), on_host(all, host.name), human_count(count, "core"), usable),
             kWhyThreads,
             "Start fewer ranks, give them more cores (--bind-to, --cpus-per-task), or set OMP_NUM_THREADS lower."});
    }
  }
}

void show_cores(const Gathered& all, Rows& rows) {
  rows.emplace_back("online",
                    by_host(all, [&](int rank) { return std::to_string(get(all.facts(rank, "cores"), "online", 0)); }));
  rows.emplace_back("usable",
                    by_rank(all, [&](int rank) { return get<std::string>(all.facts(rank, "cores"), "usable", ""); }));
  std::map<int, int> threads;
  for (const Gathered::Host& host : all.hosts()) threads.merge(cores_of(all, host).threads);
  rows.emplace_back("threads", by_rank(all, [&](int rank) {
                      const bool asked = get(all.facts(rank, "cores"), "asked_threads", 0) > 0;
                      return fmt::format("{} a rank ({})", threads.at(rank),
                                         asked ? "OMP_NUM_THREADS" : "its share of the cores");
                    }));
  rows.emplace_back("quota", by_rank(all, [&](int rank) {
                      const Json& facts = all.facts(rank, "cores");
                      return get(facts, "quota", 0.0) == 0 ? std::string()
                                                           : fmt::format("{:g} cores ({})", get(facts, "quota", 0.0),
                                                                         get<std::string>(facts, "quota_of", ""));
                    }));
}

}  // namespace

const Check kCores{.name = "cores", .title = "Cores", .look = look_at_cores, .judge = judge_cores, .show = show_cores};

}  // namespace shardmat::doctor
