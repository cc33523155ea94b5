#include "runtime/doctor/run_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/mpi_library.h"
#include "runtime/doctor/check_list.h"
#include "runtime/doctor/doctor.h"
#include "runtime/doctor/nvml.h"

namespace shardmat::doctor {
namespace {

/// What names a job, and a number within it.
struct Scheduler {
  const char *name, *job, *part;
};
constexpr Scheduler kSchedulers[] = {
    {"Slurm", "SLURM_JOB_ID", "SLURM_ARRAY_TASK_ID"}, {"PBS", "PBS_JOBID", nullptr},  {"LSF", "LSB_JOBID", "LSB_JOBINDEX"},
    {"Grid Engine", "JOB_ID", "SGE_TASK_ID"},         {"OAR", "OAR_JOB_ID", nullptr}, {"Flux", "FLUX_JOB_ID", nullptr}};

/// Variables that choose how bytes move.
constexpr std::string_view kOfTransport[] = {"OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_mtl", "UCX_",
                                             "NCCL_",        "FI_",          "MPICH_"};

/// MHz now of the cores that this rank may use: of cpufreq, else of /proc/cpuinfo, whose cores follow in their order.
std::vector<double> core_clocks(const HostFiles& files) {
  std::vector<double> found;
  const std::vector<int> usable = numbers_of_list(files.behind("/proc/self/status", "Cpus_allowed_list"));
  for (const int core : usable)
    if (const auto kilohertz = files.number(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", core)))
      found.push_back(static_cast<double>(*kilohertz) / 1000);
  if (!found.empty()) return found;
  const std::set<int> mine(usable.begin(), usable.end());
  int core = -1;
  for (const std::string& line : words_of(files.text("/proc/cpuinfo"), "\n")) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (line.rfind("processor", 0) == 0) core = std::atoi(line.c_str() + colon + 1);
    if (line.rfind("cpu MHz", 0) == 0 && mine.count(core) > 0) found.push_back(std::atof(line.c_str() + colon + 1));
  }
  return found;
}

Json gpu_clocks(const Viewpoint& viewpoint) {
  if (viewpoint.local_rank != 0 || !viewpoint.files.exists("/proc/driver/nvidia")) return Json::array();
  try {
    return ask_nvml();
  } catch (const Error&) {  // then nothing is known of them
    return Json::array();
  }
}

Json look_at_this_rank(Communicator& communicator, const Viewpoint& viewpoint) {
  Json mine{{"host", viewpoint.is_real() ? communicator.host() : viewpoint.files.line("/proc/sys/kernel/hostname")},
            {"cores", list_of_numbers(numbers_of_list(viewpoint.files.behind("/proc/self/status", "Cpus_allowed_list")))},
            {"mhz", core_clocks(viewpoint.files)},
            {"gpus", gpu_clocks(viewpoint)},
            {"load", kLoad.measure(communicator, viewpoint)}};
  if (kNetwork.look != nullptr) mine["network"] = kNetwork.look(viewpoint);
  if (kSettings.look != nullptr) mine["settings"] = kSettings.look(viewpoint);
  return mine;
}

/// Ranks with the same hosts and cores, in the order of their first rank.
Json binding_of(const std::vector<Json>& ranks) {
  std::vector<std::pair<std::pair<std::string, std::string>, std::vector<int>>> groups;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::pair key{get<std::string>(ranks[r], "host", ""), get<std::string>(ranks[r], "cores", "")};
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == key; });
    if (same == groups.end()) groups.push_back({std::move(key), {static_cast<int>(r)}});
    else same->second.push_back(static_cast<int>(r));
  }
  Json list = Json::array();
  for (const auto& [key, members] : groups)
    list.push_back({{"ranks", list_of_numbers(members)}, {"host", key.first}, {"cores", key.second}});
  return list;
}

/// Of the first rank of each host: `value` is left out where it is empty, and said once where all hosts have the same.
std::string of_hosts(const std::vector<Json>& ranks, const std::function<std::string(const Json&)>& value) {
  std::vector<std::string> hosts, values;
  for (const Json& rank : ranks) {
    const auto host = get<std::string>(rank, "host", "");
    if (std::find(hosts.begin(), hosts.end(), host) != hosts.end()) continue;
    hosts.push_back(host), values.push_back(value(rank));
  }
  if (std::all_of(values.begin(), values.end(), [&](const std::string& one) { return one == values.front(); }))
    return values.front();
  std::string text;
  for (std::size_t i = 0; i < hosts.size(); ++i) text += fmt::format("{}{}: {}", i == 0 ? "" : "; ", hosts[i], values[i]);
  return text;
}

std::string network_text(const Json& rank) {
  const Json network = get(rank, "network", Json::object());
  std::string text;
  for (const Json& port : get(network, "rdma", Json::array()))
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", get<std::string>(port, "name", ""),
                        get<std::string>(port, "rate", ""));
  for (const Json& one : get(network, "interfaces", Json::array())) {
    if (get<std::string>(one, "state", "") == "down") continue;
    const double speed = get(one, "megabits_per_s", 0.0);
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", get<std::string>(one, "name", ""),
                        speed > 0 ? fmt::format(" {:g} Gb/s", speed / 1000) : "");
  }
  return text;
}

Json transport_settings(const Json& rank) {
  Json found = Json::object();
  for (const auto& [name, value] : texts(get(rank, "settings", Json::object()), "variables"))
    if (std::any_of(std::begin(kOfTransport), std::end(kOfTransport),
                    [&](std::string_view begin) { return name.rfind(begin, 0) == 0; }))
      found[name] = value;
  return found;
}

void add_clocks(const std::vector<Json>& ranks, Json& facts) {
  std::vector<double> mhz;
  Json gpus = Json::array();
  for (const Json& rank : ranks) {
    for (const Json& one : get(rank, "mhz", Json::array())) mhz.push_back(one);
    for (const Json& gpu : get(rank, "gpus", Json::array()))
      if (gpu.contains("sm_mhz"))
        gpus.push_back({{"host", get<std::string>(rank, "host", "")},
                        {"name", get<std::string>(gpu, "name", "")},
                        {"sm_mhz", get(gpu, "sm_mhz", 0)},
                        {"sm_mhz_possible", get(gpu, "sm_mhz_possible", 0)}});
  }
  if (!mhz.empty()) {
    const auto [least, most] = std::minmax_element(mhz.begin(), mhz.end());
    facts["cpu_mhz"] = {{"min", *least}, {"max", *most}};
  }
  if (!gpus.empty()) facts["gpus"] = gpus;
}

}  // namespace

std::string job_of_environment() {
  for (const Scheduler& one : kSchedulers) {
    const char* const job = std::getenv(one.job);
    if (job == nullptr || *job == '\0') continue;
    const char* const part = one.part == nullptr ? nullptr : std::getenv(one.part);
    const bool numbered = part != nullptr && *part >= '0' && *part <= '9';  // Grid Engine says "undefined"
    return fmt::format("{} {}{}", one.name, job, numbered ? fmt::format(", task {}", part) : "");
  }
  return {};
}

std::string facts_of_run(Communicator& communicator, const std::string& root) {
  Options options;
  const Viewpoint viewpoint{HostFiles(root), options, communicator.rank(), communicator.size(), communicator.local_rank()};
  const auto replace = Json::error_handler_t::replace;
  const Json mine = look_at_this_rank(communicator, viewpoint);
  std::vector<Json> ranks;
  for (const std::string& text : communicator.all_gather(mine.dump(-1, ' ', false, replace)))
    ranks.push_back(Json::parse(text));
  Json facts{{"ranks", ranks.size()}, {"binding", binding_of(ranks)}, {"mpi", mpi_library()}};
  if (const std::string job = communicator.broadcast(job_of_environment()); !job.empty()) facts["job"] = job;
  facts["network"] = of_hosts(ranks, network_text);
  facts["transport_settings"] = transport_settings(ranks.front());
  add_clocks(ranks, facts);
  double busy = 0, stolen = 0, average = 0;
  for (const Json& rank : ranks) {
    const Json load = get(rank, "load", Json::object());
    busy = std::max(busy, get(load, "busy_cores", 0.0)), stolen = std::max(stolen, get(load, "stolen_cores", 0.0));
    average = std::max(average, get(load, "load_average_1min", 0.0));
  }
  facts["load"] = {{"busy_cores", busy}, {"stolen_cores", stolen}, {"load_average_1min", average}};
  return facts.dump(-1, ' ', false, replace);
}

}  // namespace shardmat::doctor
