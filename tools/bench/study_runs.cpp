#include "tools/bench/study_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "comm/launcher.h"
#include "runtime/doctor/run_facts.h"
#include "tools/bench/scaling_notes.h"
#include "tools/cli/version.h"

namespace shardmat::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kRunWidth = 120;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string word(const ordered_json& run, const char* key) {
  return run.contains(key) && run[key].is_string() ? run[key].get<std::string>() : std::string();
}

std::string places(const ordered_json& run) {
  std::string text;
  for (const ordered_json& group : run.value("binding", ordered_json::array()))
    text += fmt::format("{}{} on {}: cores {}", text.empty() ? "" : "; ", word(group, "ranks"), word(group, "host"),
                        word(group, "cores"));
  return text;
}

std::string network(const ordered_json& run) {
  std::string text = word(run, "mpi");
  if (const std::string ports = word(run, "network"); !ports.empty()) text += "; " + ports;
  const ordered_json settings = run.value("transport_settings", ordered_json::object());
  for (const auto& [name, value] : settings.items())
    text += fmt::format("; {}={}", name, value.is_string() ? value.get<std::string>() : value.dump());
  return text;
}

std::string clocks(const ordered_json& run) {
  std::string text;
  if (const ordered_json mhz = run.value("cpu_mhz", ordered_json::object()); mhz.contains("min")) {
    const double least = 1e-3 * mhz["min"].get<double>(), most = 1e-3 * mhz["max"].get<double>();
    text = most - least < 0.005 ? fmt::format("CPU {:.2f} GHz", most) : fmt::format("CPU {:.2f} to {:.2f} GHz", least, most);
  }
  for (const ordered_json& gpu : run.value("gpus", ordered_json::array()))
    text += fmt::format("{}{} {} of {} MHz", text.empty() ? "" : "; ", word(gpu, "name"), gpu.value("sm_mhz", 0),
                        gpu.value("sm_mhz_possible", 0));
  return text;
}

std::string load(const ordered_json& run) {
  const ordered_json of = run.value("load", ordered_json::object());
  return fmt::format("other programs kept {:.1f} cores busy, {:.1f} were stolen; load average {:.1f}",
                     of.value("busy_cores", 0.0), of.value("stolen_cores", 0.0), of.value("load_average_1min", 0.0));
}

}  // namespace

std::string look_at_run(Communicator& ranks) {
  ordered_json run{{"version", version_number()}, {"commit", commit()}, {"date", utc_now()}, {"command", command_line()}};
  run.update(ordered_json::parse(doctor::facts_of_run(ranks)));
  return run.dump();
}

std::string joined_run(const std::string& before, const std::string& now, std::size_t measured) {
  ordered_json run = ordered_json::parse(before);
  const ordered_json later = ordered_json::parse(now);
  for (const char* key : {"cpu_mhz", "gpus"})
    if (later.contains(key)) run[key] = later[key];
  for (const auto& [name, value] : later.at("load").items())
    run["load"][name] = std::max(run["load"].value(name, 0.0), value.get<double>());
  run["measured"] = measured;
  return run.dump();
}

std::string text_of_runs(const std::vector<std::string>& runs) {
  std::string text;
  for (const std::string& one : runs) {
    const ordered_json run = ordered_json::parse(one);
    std::string date = word(run, "date"), version = word(run, "version");
    std::replace(date.begin(), date.end(), 'T', ' ');
    if (!date.empty() && date.back() == 'Z') date.replace(date.size() - 1, 1, " UTC");
    if (const std::string built = word(run, "commit"); !built.empty()) version += fmt::format(" ({})", built);
    text += fmt::format("\nRun{}\n", runs.size() == 1 ? "" : fmt::format(" {} of {}", &one - runs.data() + 1, runs.size()));
    const auto row = [&](const char* label, const std::string& value) {
      if (!value.empty()) text += wrapped(fmt::format("{:<8} {}", label, value), 2, kRunWidth);
    };
    row("program",
        fmt::format("shardmat {}, {}, {} cases: {}", version, date, run.value("measured", 0), word(run, "command")));
    row("job", word(run, "job"));
    row("ranks", places(run));
    row("network", network(run));
    row("clocks", clocks(run));
    row("load", load(run));
  }
  return text;
}

std::string differences_of_runs(const std::string& a, const std::string& b) {
  const ordered_json x = ordered_json::parse(a), y = ordered_json::parse(b);
  std::string text;
  const auto compare = [&](const char* what, const std::string& before, const std::string& now) {
    if (before != now) text += fmt::format("{}{} ({}, now {})", text.empty() ? "" : ", ", what, before, now);
  };
  compare("program", fmt::format("{} {}", word(x, "version"), word(x, "commit")),
          fmt::format("{} {}", word(y, "version"), word(y, "commit")));
  compare("ranks and cores", places(x), places(y));
  compare("network", network(x), network(y));
  return text;
}

}  // namespace shardmat::tools
