// The hosts' clocks: how far they are apart, and how fast they are read.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "kernels/base/text.h"
#include "runtime/doctor/check_list.h"

namespace shardmat::doctor {
namespace {

constexpr double kApart = 1;  // seconds

/// Seconds since 1970. In a folder of a test: what its clock of the hardware says.
double now(const Viewpoint& viewpoint) {
  if (!viewpoint.is_real()) {
    const auto told = viewpoint.files.number("/sys/class/rtc/rtc0/since_epoch");
    if (told) return static_cast<double>(*told);
  }
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Json look_at_clocks(const Viewpoint& viewpoint) {
  const std::string source = viewpoint.files.line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  return source.empty() ? Json::object() : Json{{"source", source}};
}

/// This rank's clock less that of rank 0: the median of several meetings, after which both are read.
Json measure_clocks(Communicator& communicator, const Viewpoint& viewpoint) {
  std::array<double, 5> ahead{};
  for (double& one : ahead) {
    communicator.barrier();
    const std::vector<double> clocks = communicator.all_gather(now(viewpoint));
    one = clocks[static_cast<std::size_t>(communicator.rank())] - clocks.front();
  }
  std::sort(ahead.begin(), ahead.end());
  return {{"ahead_s", ahead[ahead.size() / 2]}};
}

void judge_clocks(const Gathered& all, Findings& findings) {
  int first = 0, last = 0;
  const auto ahead = [&](int rank) { return get(all.facts(rank, "clocks"), "ahead_s", 0.0); };
  for (int rank = 0; rank < all.size(); ++rank) {
    if (ahead(rank) < ahead(first)) first = rank;
    if (ahead(rank) > ahead(last)) last = rank;
  }
  if (const double apart = ahead(last) - ahead(first); apart > kApart)
    findings.push_back({"clocks_apart",
                        fmt::format("the clock of host {} is {} ahead of that of host {}", all.host(last),
                                    human_seconds(apart), all.host(first)),
                        "Logs of ranks cannot be put in order, shared files seem to come from the future, and certificates "
                        "and tickets are refused.",
                        "Let chrony or systemd-timesyncd keep the time on all hosts (chronyc tracking)."});
  for (const Gathered::Host& host : all.hosts()) {
    const auto source = get<std::string>(all.facts(host.ranks.front(), "clocks"), "source", "");
    if (source == "hpet" || source == "acpi_pm")
      findings.push_back({"slow_clock", fmt::format("Linux reads the time from {}{}", source, on_host(all, host.name)),
                          "Each reading takes about a microsecond, and ranks that wait read the time all along.",
                          "Look why the kernel left tsc (dmesg | grep clocksource); boot with tsc=reliable where the CPU "
                          "keeps it steady."});
  }
}

void show_clocks(const Gathered& all, Rows& rows) {
  rows.emplace_back("source",
                    by_host(all, [&](int rank) { return get<std::string>(all.facts(rank, "clocks"), "source", ""); }));
  if (all.hosts().size() == 1) return;
  rows.emplace_back("ahead", by_host(all, [&](int rank) {
                      const Json& facts = all.facts(rank, "clocks");
                      return facts.contains("ahead_s") ? fmt::format("{:+.3f} s", get(facts, "ahead_s", 0.0))
                                                       : std::string();
                    }));
}

}  // namespace

const Check kClocks{.name = "clocks",
                    .title = "Clocks",
                    .look = look_at_clocks,
                    .measure = measure_clocks,
                    .judge = judge_clocks,
                    .show = show_clocks};

}  // namespace shardmat::doctor
