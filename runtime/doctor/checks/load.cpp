// What other programs do with the cores while all ranks sleep.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "kernels/base/timer.h"
#include "runtime/doctor/check_list.h"

namespace shardmat::doctor {
namespace {

constexpr double kBusyOfCores = 0.25;  // of the cores
constexpr double kStolen = 0.05;       // of the cores

/// Seconds of all cores since the host started.
struct CoreSeconds {
  double busy = 0, stolen = 0;
};

/// The first line of /proc/stat: user nice system idle iowait irq softirq steal.
CoreSeconds core_seconds(const HostFiles& files) {
  std::array<double, 8> ticks{};
  const std::vector<std::string> words = words_of(files.line("/proc/stat"));
  if (words.size() < 9) return {};
  for (std::size_t i = 0; i < ticks.size(); ++i) ticks[i] = std::atof(words[i + 1].c_str());
  const double a_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return {(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / a_second, ticks[7] / a_second};
}

Json measure_load(Communicator& communicator, const Viewpoint& viewpoint) {
  constexpr std::chrono::milliseconds kWindow{250};
  communicator.barrier();
  const Timer timer;
  const CoreSeconds before = core_seconds(viewpoint.files);
  std::this_thread::sleep_for(kWindow);
  const CoreSeconds after = core_seconds(viewpoint.files);
  const double seconds = timer.seconds();
  Json facts{{"busy_cores", (after.busy - before.busy) / seconds},
             {"stolen_cores", (after.stolen - before.stolen) / seconds}};
  const std::vector<std::string> averages = words_of(viewpoint.files.line("/proc/loadavg"));
  if (!averages.empty()) facts["load_average_1min"] = std::atof(averages.front().c_str());
  return facts;
}

void judge_load(const Gathered& all, Findings& findings) {
  for (const Gathered::Host& host : all.hosts()) {
    const Json& facts = all.facts(host.ranks.front(), "load");
    const double cores = std::max(1, get(all.facts(host.ranks.front(), "cores"), "online", 1));
    const double busy = get(facts, "busy_cores", 0.0), stolen = get(facts, "stolen_cores", 0.0);
    if (busy > kBusyOfCores * cores)
      findings.push_back({"busy_host",
                          fmt::format("other programs keep {:.1f} of {} cores busy{}", busy, cores, on_host(all, host.name)),
                          "Ranks wait for each other at every exchange: one rank that shares its core slows down all.",
                          "Wait until the host is idle, take another one, or ask for it alone (Slurm's --exclusive)."});
    if (stolen > kStolen * cores)
      findings.push_back(
          {"stolen_time",
           fmt::format("the hypervisor takes {:.0f} % of the cores' time{}", 100 * stolen / cores, on_host(all, host.name)),
           "Other virtual machines use the same cores; times are not those of this hardware.",
           "Take a virtual machine with dedicated cores."});
  }
}

void show_load(const Gathered& all, Rows& rows) {
  rows.emplace_back("by others", by_host(all, [&](int rank) {
                      const Json& facts = all.facts(rank, "load");
                      if (!facts.contains("busy_cores")) return std::string();
                      return fmt::format("{:.1f} cores busy, {:.1f} stolen; load average {:g}",
                                         get(facts, "busy_cores", 0.0), get(facts, "stolen_cores", 0.0),
                                         get(facts, "load_average_1min", 0.0));
                    }));
}

}  // namespace

const Check kLoad{.name = "load", .title = "Load", .measure = measure_load, .judge = judge_load, .show = show_load};

}  // namespace shardmat::doctor
