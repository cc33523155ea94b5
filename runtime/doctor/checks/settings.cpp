// Variables of the environment that change how runs go.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

#include "runtime/doctor/check_list.h"

namespace shardmat::doctor {
namespace {

constexpr std::string_view kPrefixes[] = {"OMP_",      "GOMP_",     "KMP_",       "NCCL_",          "CUDA_",
                                          "UCX_",      "OMPI_MCA_", "MPICH_",     "I_MPI_",         "FI_",
                                          "SHARDMAT_", "MALLOC_",   "LD_PRELOAD", "LD_LIBRARY_PATH"};
/// They differ from rank to rank, or name what the launcher made for this run.
constexpr std::string_view kOfEachRank[] = {"CUDA_VISIBLE_DEVICES", "OMPI_MCA_orte_",  "OMPI_MCA_ess",
                                            "OMPI_MCA_pmix",        "OMPI_MCA_shmem_", "OMPI_MCA_initial_wdir"};

bool begins_with_one(std::string_view text, const auto& prefixes) {
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view one) { return text.rfind(one, 0) == 0; });
}

Json look_at_settings(const Viewpoint&) {
  std::map<std::string, std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && begins_with_one(text, kPrefixes) && !begins_with_one(text, kOfEachRank))
      found[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  return {{"variables", found}};
}

std::string value_on(const Gathered& all, int rank, const std::string& name) {
  const std::map<std::string, std::string> variables = texts(all.facts(rank, "settings"), "variables");
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

std::set<std::string> variable_names(const Gathered& all) {
  std::set<std::string> names;
  for (int rank = 0; rank < all.size(); ++rank)
    for (const auto& [name, value] : texts(all.facts(rank, "settings"), "variables")) names.insert(name);
  return names;
}

struct Slowing {
  const char *name, *value, *effect;
};
constexpr Slowing kSlowing[] = {{"CUDA_LAUNCH_BLOCKING", "1", "each kernel ends before the next is started"},
                                {"NCCL_P2P_DISABLE", "1", "GPUs do not reach each other directly"},
                                {"NCCL_SHM_DISABLE", "1", "ranks of a host talk through the network"},
                                {"NCCL_IB_DISABLE", "1", "RDMA networks are not used"},
                                {"NCCL_DEBUG", "TRACE", "NCCL writes a line for each step"},
                                {"SHARDMAT_ISA", "baseline", "host kernels take the simplest instructions"},
                                {"MALLOC_PERTURB_", "", "each allocation is filled"},
                                {"CUDA_DEVICE_MAX_CONNECTIONS", "1", "copies and kernels do not overlap"}};

/// Open MPI's transports without its shared memory.
bool lacks_shared_memory(const std::string& transports) {
  return !transports.empty() && transports.front() != '^' && transports.find("vader") == std::string::npos &&
         transports.find("sm") == std::string::npos;
}

void judge_settings(const Gathered& all, Findings& findings) {
  std::string slow;
  for (const Slowing& one : kSlowing)
    if (const std::string value = value_on(all, 0, one.name); !value.empty() && (value == one.value || *one.value == '\0'))
      slow += fmt::format("{}{}={} ({})", slow.empty() ? "" : ", ", one.name, value, one.effect);
  if (const std::string transports = value_on(all, 0, "OMPI_MCA_btl"); all.size() > 1 && lacks_shared_memory(transports))
    slow +=
        fmt::format("{}OMPI_MCA_btl={} (ranks of a host talk through the network)", slow.empty() ? "" : ", ", transports);
  if (!slow.empty())
    findings.push_back({"slowing_settings", "variables make runs slow: " + slow, "They are meant for looking for errors.",
                        "unset them before runs that count."});
  if (const std::string value = value_on(all, 0, "NCCL_NVLS_ENABLE"); value == "0")
    findings.push_back(
        {"no_nvlink_multicast", "NCCL_NVLS_ENABLE=0: NVSwitch does not sum over GPUs",
         "Sums over many GPUs take longer. Where NVLink's multicast does not work, NCCL fails without this setting.",
         "Keep it if NCCL fails to start without it; else unset it."});
  std::string different;
  for (const std::string& name : variable_names(all)) {
    std::set<std::string> values;
    for (int rank = 0; rank < all.size(); ++rank) values.insert(value_on(all, rank, name));
    if (values.size() > 1)
      different += fmt::format("{}{}: {}", different.empty() ? "" : "; ", name, by_rank(all, [&](int rank) {
                                 const std::string value = value_on(all, rank, name);
                                 return value.empty() ? std::string("not set") : value;
                               }));
  }
  if (!different.empty())
    findings.push_back({"different_settings", "variables differ from rank to rank: " + different,
                        "The slowest setting counts for all ranks, and some settings of NCCL and MPI must agree.",
                        "mpirun -x NAME gives a variable to all ranks (srun --export=ALL); set it in the job's script, not "
                        "in a shell's start-up file."});
}

void show_settings(const Gathered& all, Rows& rows) {
  std::string lines;
  for (const std::string& name : variable_names(all))
    lines += fmt::format("{}{}={}", lines.empty() ? "" : "\n", name,
                         by_rank(all, [&](int rank) { return value_on(all, rank, name); }));
  rows.emplace_back("variables", lines);
}

}  // namespace

const Check kSettings{
    .name = "settings", .title = "Settings", .look = look_at_settings, .judge = judge_settings, .show = show_settings};

}  // namespace shardmat::doctor
