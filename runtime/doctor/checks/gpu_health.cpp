// What the driver's management library tells of GPUs: clocks, errors of memory, other programs, links.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/doctor/check_list.h"
#include "runtime/doctor/nvml.h"

namespace shardmat::doctor {
namespace {

constexpr double kBusyGpu = 0.1;

Json look_at_gpu_health(const Viewpoint& viewpoint) {
  if (!viewpoint.files.exists("/proc/driver/nvidia"))
    return {{"not_looked_at", "no driver of NVIDIA is loaded (/proc/driver/nvidia)"}};
  // The other ranks of the host would tell the same.
  return viewpoint.local_rank == 0 ? Json{{"gpus", ask_nvml()}} : Json::object();
}

Json health_of(const Gathered& all, const Gathered::Host& host) {
  return get(all.facts(host.ranks.front(), "gpu_health"), "gpus", Json::array());
}

void judge_slow(const Json& gpu, const std::string& who, Findings& findings) {
  std::string reasons;
  for (const Json& reason : get(gpu, "slowed_by", Json::array()))
    if (const auto text = reason.get<std::string>(); text != "power cap") reasons += (reasons.empty() ? "" : ", ") + text;
  if (!reasons.empty())
    findings.push_back(
        {"slowed_gpu",
         fmt::format("{} runs at {} of {} MHz: {}", who, get(gpu, "sm_mhz", 0), get(gpu, "sm_mhz_possible", 0), reasons),
         "One slow GPU slows down all ranks, which wait for it in every iteration.",
         "Look at cooling and power (nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER), or leave the GPU out."});
}

void judge_gpu_health(const Gathered& all, Findings& findings) {
  for (const Gathered::Host& host : all.hosts())
    for (const Json& gpu : health_of(all, host)) {
      const std::string who = fmt::format("GPU {}{}", get<std::string>(gpu, "id", ""), on_host(all, host.name));
      judge_slow(gpu, who, findings);
      if (const auto errors = get(gpu, "uncorrected_errors", std::int64_t{0}); errors > 0)
        findings.push_back(
            {"ecc_errors", fmt::format("{} has had {} uncorrected errors of memory since it started", who, errors),
             "The next one ends the processes that use the GPU; without ECC, results would be wrong.",
             "Drain the host and reset the GPU (nvidia-smi -r), which retires bad rows; if errors return, replace it."});
      const int processes = get(gpu, "processes", 0);
      const double busy = get(gpu, "busy_share", 0.0);
      if (processes > 0 || busy > kBusyGpu)
        findings.push_back(
            {"busy_gpu",
             fmt::format("{} is used by {} other process{}, busy {:.0f} % of the time", who, processes,
                         processes == 1 ? "" : "es", 100 * busy),
             "Other programs take memory and time of the GPU, and all ranks wait for the slowest.",
             "nvidia-smi shows them; end them, or take other GPUs (CUDA_VISIBLE_DEVICES on all ranks alike)."});
    }
}

void show_gpu_health(const Gathered& all, Rows& rows) {
  for (const Gathered::Host& host : all.hosts())
    for (const Json& gpu : health_of(all, host)) {
      const Json slowed = get(gpu, "slowed_by", Json::array());
      rows.emplace_back(
          get<std::string>(gpu, "id", ""),
          fmt::format("{} of {} MHz{}, ECC {}, {} uncorrected errors, busy {:.0f} %, {} reached by NVLink, {} in all{}",
                      get(gpu, "sm_mhz", 0), get(gpu, "sm_mhz_possible", 0), slowed.empty() ? "" : ", slowed down",
                      gpu.contains("ecc_on") ? (get(gpu, "ecc_on", false) ? "on" : "off") : "not known",
                      get(gpu, "uncorrected_errors", std::int64_t{0}), 100 * get(gpu, "busy_share", 0.0),
                      get(gpu, "linked", Json::array()).size(), get(gpu, "reaches", Json::array()).size(),
                      on_host(all, host.name)));
    }
}

}  // namespace

const Check kGpuHealth{.name = "gpu_health",
                       .title = "Health of GPUs",
                       .look = look_at_gpu_health,
                       .judge = judge_gpu_health,
                       .show = show_gpu_health,
                       .is_quick = false};

}  // namespace shardmat::doctor
