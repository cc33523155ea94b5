// NUMA nodes: do ranks have their memory near their cores?
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/doctor/check_list.h"

namespace shardmat::doctor {
namespace {

constexpr const char* kNodes = "/sys/devices/system/node";

Json look_at_numa(const Viewpoint& viewpoint) {
  const HostFiles& files = viewpoint.files;
  const std::vector<int> usable = numbers_of_list(files.behind("/proc/self/status", "Cpus_allowed_list"));
  const std::set<int> mine(usable.begin(), usable.end());
  Json nodes = Json::array();
  std::vector<int> own;
  for (const int node : numbers_of_list(files.line(fmt::format("{}/online", kNodes)))) {
    const std::string cores = files.line(fmt::format("{}/node{}/cpulist", kNodes, node));
    nodes.push_back({{"node", node}, {"cores", cores}});
    const std::vector<int> numbers = numbers_of_list(cores);
    if (std::any_of(numbers.begin(), numbers.end(), [&](int core) { return mine.count(core) != 0; })) own.push_back(node);
  }
  if (nodes.empty()) return {{"not_looked_at", fmt::format("{} cannot be read", kNodes)}};
  return {{"nodes", nodes},
          {"nodes_of_cores", list_of_numbers(own)},
          {"nodes_of_memory", list_of_numbers(numbers_of_list(files.behind("/proc/self/status", "Mems_allowed_list")))}};
}

void judge_numa(const Gathered& all, Findings& findings) {
  std::vector<int> far;
  for (int rank = 0; rank < all.size(); ++rank) {
    const Json& facts = all.facts(rank, "numa");
    const std::vector<int> cores = numbers_of_list(get<std::string>(facts, "nodes_of_cores", "")),
                           memory = numbers_of_list(get<std::string>(facts, "nodes_of_memory", ""));
    if (memory.empty()) continue;
    const bool near = std::any_of(cores.begin(), cores.end(),
                                  [&](int n) { return std::find(memory.begin(), memory.end(), n) != memory.end(); });
    if (!near && !cores.empty()) far.push_back(rank);
  }
  if (far.empty()) return;
  const Json& facts = all.facts(far.front(), "numa");
  findings.push_back(
      {"far_memory",
       fmt::format("{} run on cores of NUMA node {}, but may take memory of node {} alone", ranks_text(far),
                   get<std::string>(facts, "nodes_of_cores", ""), get<std::string>(facts, "nodes_of_memory", "")),
       "All memory of these ranks is that of another node: half the bandwidth, or less.",
       "Bind memory with the cores: numactl --localalloc, srun --mem-bind=local, or no numactl --membind."});
}

void show_numa(const Gathered& all, Rows& rows) {
  rows.emplace_back("NUMA nodes", by_host(all, [&](int rank) {
                      std::string text;
                      for (const Json& node : get(all.facts(rank, "numa"), "nodes", Json::array()))
                        text += fmt::format("{}{}: cores {}", text.empty() ? "" : ", ", get(node, "node", 0),
                                            get<std::string>(node, "cores", ""));
                      return text;
                    }));
  rows.emplace_back("rank on nodes",
                    by_rank(all, [&](int rank) { return get<std::string>(all.facts(rank, "numa"), "nodes_of_cores", ""); }));
}

}  // namespace

const Check kNuma{.name = "numa", .title = "NUMA", .look = look_at_numa, .judge = judge_numa, .show = show_numa};

}  // namespace shardmat::doctor
