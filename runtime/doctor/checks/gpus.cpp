// GPUs: which each rank sees and takes, and which of them reach each other.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>

#include "comm/nccl/nccl_communicator.h"
#include "comm/placement.h"
#include "kernels/base/cuda_facts.h"
#include "kernels/base/device.h"
#include "kernels/base/text.h"
#include "runtime/doctor/check_list.h"
#include "runtime/doctor/gpu_list.h"

namespace shardmat::doctor {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// As CUDA shows them to this process.
Json visible_to_cuda() {
  Json visible = Json::array();
  const int count = cuda_device_count();
  for (int i = 0; i < count; ++i) {
    const DeviceProperties found = properties({Backend::cuda, i});
    Json reaches = Json::array();
    for (int other = 0; other < count; ++other)
      if (other != i && reaches_memory(i, other)) reaches.push_back(lower(properties({Backend::cuda, other}).id));
    visible.push_back({{"id", lower(found.id)},
                       {"name", found.name},
                       {"uuid", found.uuid},
                       {"memory_bytes", found.memory_bytes},
                       {"reaches", reaches}});
  }
  return visible;
}

Json look_at_gpus(const Viewpoint& viewpoint) {
  const HostFiles& files = viewpoint.files;
  const CudaVersions cuda = cuda_versions();
  const std::string driver = driver_version(files);
  const char* const restricted = std::getenv("CUDA_VISIBLE_DEVICES");
  Json facts{
      {"built_with_cuda", cuda.runtime != 0}, {"built_with_nccl", built_with_nccl()}, {"on_host", gpus_on_host(files)}};
  if (built_with_nccl() && nccl_version().empty()) facts["nccl_missing"] = nccl_version_of_build();
  if (!driver.empty()) facts["driver"] = driver;
  if (cuda.runtime != 0) facts["runtime_cuda"] = cuda.runtime;
  const int supported = viewpoint.is_real() && cuda.driver != 0 ? cuda.driver : cuda_of_driver(driver);
  if (supported != 0) facts["driver_cuda"] = supported;
  if (restricted != nullptr) facts["cuda_visible_devices"] = restricted;
  // Starting CUDA takes time, which quick looks do not take. They ask it if the run has started it.
  const bool ask = viewpoint.is_real() && cuda.runtime != 0 && (viewpoint.options.measure || cuda_has_started());
  const Json visible = ask ? visible_to_cuda() : visible_of(facts["on_host"], restricted);
  if (!visible.is_null()) facts["visible"] = visible;
  if (ask && visible.empty()) facts["why_none_visible"] = why_no_cuda_device();
  return facts;
}

std::string key(const Json& gpu) {
  const std::string uuid = plain_uuid(get<std::string>(gpu, "uuid", ""));
  return uuid.empty() ? get<std::string>(gpu, "id", "") : uuid;
}

bool contains(const Json& gpus, const Json& gpu) {
  return std::any_of(gpus.begin(), gpus.end(), [&](const Json& one) { return key(one) == key(gpu); });
}

Json visible(const Gathered& all, int rank) { return get(all.facts(rank, "gpus"), "visible", Json::array()); }

/// A quick look may not know which GPUs a rank sees. Nothing is then said about where the rank works.
bool knows_visible(const Gathered& all, int rank) { return all.facts(rank, "gpus").contains("visible"); }

/// The GPU that a rank takes, as place_ranks() chooses it; null if it sees none, or that is not known.
Json taken(const Gathered& all, int rank) {
  const Json seen = visible(all, rank);
  return seen.empty() ? Json() : seen[static_cast<std::size_t>(all.local_rank(rank)) % seen.size()];
}

std::string id(const Json& gpu) { return get<std::string>(gpu, "id", ""); }

std::string cuda_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// Of a host, whose ranks see the same driver.
bool judge_driver(const Gathered& all, const Gathered::Host& host, Findings& findings) {
  const Json& facts = all.facts(host.ranks.front(), "gpus");
  const int runtime = get(facts, "runtime_cuda", 0), driver = get(facts, "driver_cuda", 0);
  if (runtime == 0 || driver == 0 || driver / 1000 >= runtime / 1000) return true;
  findings.push_back(
      {"old_driver",
       fmt::format("the driver {}{} supports CUDA {}, but this program uses CUDA {}", get<std::string>(facts, "driver", ""),
                   on_host(all, host.name), cuda_text(driver), cuda_text(runtime)),
       "CUDA refuses to start, and runs take the host backend or fail.",
       fmt::format("Install a driver for CUDA {} (or its forward compatibility package), or build with an older CUDA.",
                   runtime / 1000)});
  return false;
}

void judge_unused(const Gathered& all, const Gathered::Host& host, Findings& findings) {
  for (const int rank : host.ranks) {
    const Json& facts = all.facts(rank, "gpus");
    const std::size_t there = get(facts, "on_host", Json::array()).size();
    const bool built = get(facts, "built_with_cuda", false);
    if (there == 0 || (built && (!knows_visible(all, rank) || !visible(all, rank).empty()))) continue;
    const auto restricted = get<std::string>(facts, "cuda_visible_devices", "unset");
    findings.push_back(
        {"unused_gpus",
         fmt::format("there {}{}, but {}", there == 1 ? "is a GPU" : fmt::format("are {} GPUs", there),
                     on_host(all, host.name),
                     !built ? "this program was built without CUDA"
                            : fmt::format("rank {} sees none: {} (CUDA_VISIBLE_DEVICES: {})", rank,
                                          get<std::string>(facts, "why_none_visible", "CUDA shows no device"), restricted)),
         "Products run on the host, at a tenth of the speed or less.",
         built
             ? "Ask the scheduler for GPUs (--gpus-per-node), unset CUDA_VISIBLE_DEVICES, run the container with --gpus all."
             : "Build where nvcc is installed (-DSHARDMAT_CUDA=ON)."});
    return;
  }
}

/// Two ranks that take one GPU.
void judge_shared(const Gathered& all, const Gathered::Host& host, Findings& findings) {
  std::map<std::string, std::vector<int>> takers;
  for (const int rank : host.ranks)
    if (const Json gpu = taken(all, rank); !gpu.is_null()) takers[key(gpu)].push_back(rank);
  std::string text;
  for (const auto& [gpu, ranks] : takers)
    if (ranks.size() > 1)
      text += fmt::format("{}{} take GPU {}", text.empty() ? "" : ", ", ranks_text(ranks), id(taken(all, ranks.front())));
  if (!text.empty())
    findings.push_back(
        {"shared_gpu", text + on_host(all, host.name),
         "NCCL refuses two ranks on one GPU, and products take turns. Commands let one rank of them work, or refuse to run.",
         "Start as many ranks on a host as it has GPUs (mpirun --map-by ppr:N:node, --ntasks-per-node), each seeing all of "
         "them."});
}

/// Ranks that do not see the GPU of another rank of their host.
void judge_hidden(const Gathered& all, const Gathered::Host& host, Findings& findings) {
  std::vector<int> blind;
  for (const int rank : host.ranks) {
    const Json seen = visible(all, rank);
    const bool sees = std::all_of(host.ranks.begin(), host.ranks.end(), [&](int other) {
      const Json gpu = taken(all, other);
      return gpu.is_null() || contains(seen, gpu);
    });
    if (!seen.empty() && !sees) blind.push_back(rank);
  }
  if (!blind.empty())
    findings.push_back(
        {"hidden_peers",
         fmt::format("{} do{} not see the GPUs of the other ranks{} (CUDA_VISIBLE_DEVICES, or the scheduler's cgroup)",
                     ranks_text(blind), blind.size() == 1 ? "es" : "", on_host(all, host.name)),
         "CUDA cannot open memory of a GPU that is hidden by a cgroup: NCCL goes through the host's memory, and the "
         "exchange peer is refused.",
         "Let each rank see all GPUs of its host: srun --gpus-per-node=N in place of --gpus-per-task or --gpu-bind, and no "
         "CUDA_VISIBLE_DEVICES; "
         "each rank takes its own by its number on the host."});
}

void judge_peers(const Gathered& all, const Gathered::Host& host, Findings& findings) {
  std::string pairs;
  for (const int rank : host.ranks)
    for (const int other : host.ranks) {
      const Json mine = taken(all, rank), theirs = taken(all, other);
      if (other <= rank || mine.is_null() || theirs.is_null() || !mine.contains("reaches") ||
          !contains(visible(all, rank), theirs))
        continue;
      const Json& reached = mine["reaches"];
      if (key(mine) != key(theirs) && std::find(reached.begin(), reached.end(), id(theirs)) == reached.end())
        pairs += fmt::format("{}{} and {}", pairs.empty() ? "" : "; ", id(mine), id(theirs));
    }
  if (!pairs.empty())
    findings.push_back({"no_peer_access",
                        fmt::format("GPUs{} do not reach each other's memory: {}", on_host(all, host.name), pairs),
                        "Entries of x go through the host's memory, at a tenth of NVLink's bandwidth.",
                        "Take GPUs that NVLink or one PCIe switch joins (nvidia-smi topo -m); switch off PCIe's ACS or the "
                        "IOMMU on bare metal."});
}

void judge_places(const Gathered& all, const Gathered::Host& host, Findings& findings) {
  std::vector<int> far;
  std::string narrow;
  const Json on_this_host = get(all.facts(host.ranks.front(), "gpus"), "on_host", Json::array());
  for (const Json& gpu : on_this_host)
    if (const int lanes = get(gpu, "pcie_lanes", 0), possible = get(gpu, "pcie_lanes_possible", 0);
        lanes > 0 && lanes < possible && possible < 255)
      narrow += fmt::format("{}{} ({} of {})", narrow.empty() ? "" : ", ", id(gpu), lanes, possible);
  for (const int rank : host.ranks) {
    const Json gpu = taken(all, rank);
    const std::vector<int> nodes = numbers_of_list(get<std::string>(all.facts(rank, "numa"), "nodes_of_cores", ""));
    for (const Json& known : on_this_host)
      if (!gpu.is_null() && key(known) == key(gpu) && known.contains("numa_node") && !nodes.empty() &&
          std::find(nodes.begin(), nodes.end(), get(known, "numa_node", 0)) == nodes.end())
        far.push_back(rank);
  }
  if (!far.empty())
    findings.push_back(
        {"far_gpu",
         fmt::format("{} run{} on cores of another NUMA node than {} GPU{}", ranks_text(far), far.size() == 1 ? "s" : "",
                     far.size() == 1 ? "its" : "their", on_host(all, host.name)),
         "Copies between host and GPU cross the link between the sockets, and kernels start later.",
         "Bind each rank to the cores of its GPU's node (mpirun --map-by numa, srun --cpu-bind=map_ldom:…), or to none."});
  if (!narrow.empty())
    findings.push_back({"narrow_pcie",
                        fmt::format("GPUs with fewer PCIe lanes than they can have{}: {}", on_host(all, host.name), narrow),
                        "Copies between host and GPU, and the network's, take as many times longer.",
                        "Seat the card anew, try another slot or riser; look at dmesg for PCIe errors."});
}

void judge_gpus(const Gathered& all, Findings& findings) {
  bool everywhere = true;
  for (const Gathered::Host& host : all.hosts()) {
    if (judge_driver(all, host, findings)) judge_unused(all, host, findings);
    judge_shared(all, host, findings);
    judge_hidden(all, host, findings);
    judge_peers(all, host, findings);
    judge_places(all, host, findings);
    for (const int rank : host.ranks) everywhere = everywhere && !visible(all, rank).empty();
  }
  const Json& facts = all.facts(0, "gpus");
  if (everywhere && all.size() > 1 && get(facts, "built_with_cuda", false) && !get(facts, "built_with_nccl", false))
    findings.push_back({"no_nccl", "this program was built without NCCL", "Several ranks cannot work on GPUs without it.",
                        "Build where NCCL is installed (libnccl-dev, or -DNCCL_ROOT=DIR)."});
  for (int rank = 0; everywhere && all.size() > 1 && rank < all.size(); ++rank)
    if (const std::string missing = get<std::string>(all.facts(rank, "gpus"), "nccl_missing", ""); !missing.empty()) {
      findings.push_back({"no_nccl", fmt::format("NCCL {} or newer cannot be loaded on rank {}", missing, rank),
                          "Several ranks cannot work on GPUs without it.",
                          "Install it (package libnccl2), or put the folder of libnccl.so.2 into LD_LIBRARY_PATH."});
      break;
    }
}

void show_gpus(const Gathered& all, Rows& rows) {
  rows.emplace_back("GPUs", by_host(all, [&](int rank) {
                      std::map<std::string, int> names;
                      const Json& facts = all.facts(rank, "gpus");
                      const Json there = get(facts, "on_host", Json::array());
                      for (const Json& gpu : there.empty() ? visible(all, rank) : there)
                        ++names[get<std::string>(gpu, "name", "")];
                      std::string text;
                      for (const auto& [name, count] : names)
                        text += fmt::format("{}{} × {}", text.empty() ? "" : ", ", count, name);
                      return text.empty() ? std::string("none") : text;
                    }));
  rows.emplace_back("driver", by_host(all, [&](int rank) {
                      const Json& facts = all.facts(rank, "gpus");
                      const int cuda = get(facts, "driver_cuda", 0);
                      return get<std::string>(facts, "driver", "") +
                             (cuda == 0 ? "" : fmt::format(" (CUDA {})", cuda_text(cuda)));
                    }));
  rows.emplace_back("CUDA", by_rank(all, [&](int rank) {
                      const int cuda = get(all.facts(rank, "gpus"), "runtime_cuda", 0);
                      return cuda == 0 ? std::string("this program was built without it") : cuda_text(cuda);
                    }));
  const auto place = [&](int rank) {
    const Json gpu = taken(all, rank);
    const bool unknown = !knows_visible(all, rank) && !get(all.facts(rank, "gpus"), "on_host", Json::array()).empty();
    if (unknown) return std::string("only CUDA knows, which a quick look does not start");
    return gpu.is_null() ? std::string() : fmt::format("{} of {} visible", id(gpu), visible(all, rank).size());
  };
  std::string places;
  for (int rank = 0; rank < all.size(); ++rank)
    if (const std::string text = place(rank); !text.empty())
      places += fmt::format("{}{} (rank {})", places.empty() ? "" : ", ", text, rank);
  rows.emplace_back("taken", places);
}

}  // namespace

const Check kGpus{.name = "gpus", .title = "GPUs", .look = look_at_gpus, .judge = judge_gpus, .show = show_gpus};

}  // namespace shardmat::doctor
