#include "tools/cli/write_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "comm/launcher.h"
#include "kernels/base/parallel.h"
#include "tools/cli/version.h"
#include "tools/cli/write_text.h"

namespace shardmat::tools {
namespace {

using nlohmann::ordered_json;

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// Ranks of the launcher on this host; 1 if it does not tell.
int ranks_on_host() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (const char* const text = std::getenv(variable); text != nullptr) return std::max(1, std::atoi(text));
  return 1;
}

ordered_json run() {
  const Launch launched = launch();
  return {{"version", version_number()},
          {"commit", commit()},
          {"date", date()},
          {"host", host()},
          {"command", command_line()},
          {"launcher", {{"name", launched.launcher.empty() ? "none" : launched.launcher}, {"ranks", launched.size}}},
          {"threads", threads_of_environment(std::max(1, usable_cores() / ranks_on_host()))},
          {"cores", names_of_usable_cores()}};
}

}  // namespace

void write_report(const std::string& path, const std::string& json,
                  const std::optional<std::vector<std::string>>& findings) {
  ordered_json report = ordered_json::parse(json);
  const auto note = [&](ordered_json& of) {
    ordered_json with{{"run", run()}};
    if (findings) with["run"]["doctor"] = {{"findings", findings->size()}, {"names", *findings}};
    with.update(of);
    of = std::move(with);
  };
  if (report.is_array()) std::for_each(report.begin(), report.end(), note);
  else note(report);
  write_text(path, report.dump(2) + "\n");
}

}  // namespace shardmat::tools
