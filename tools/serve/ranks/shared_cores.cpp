#include "tools/serve/ranks/shared_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "tools/serve/ranks/cores.h"

namespace shardmat::serve {
namespace {

/// Empty if it cannot be read: the process may end meanwhile.
std::string content_of(const std::filesystem::path& file) {
  const std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();  // unlike an iterator, this does not throw
  return std::move(text).str();
}

/// "…/shardmat", "worker", …; each word ends with a 0.
bool is_rank(std::string_view command) {
  constexpr std::string_view kProgram = "shardmat", kWorker = "worker";
  const std::size_t end = command.find('\0');
  if (end == std::string_view::npos) return false;
  const std::string_view program = command.substr(0, end), rest = command.substr(end + 1);
  return program.substr(program.rfind('/') + 1) == kProgram && rest.substr(0, rest.find('\0')) == kWorker;
}

/// The cores that a process may use, of /proc/PID/status.
std::set<int> cores_of(const std::filesystem::path& process) {
  constexpr std::string_view kLine = "Cpus_allowed_list:";
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(kLine)) return cpus_of(std::string_view(line).substr(line.find_first_not_of(" \t", kLine.size())));
  return {};
}

}  // namespace

SharedCores shared_cores(const std::vector<service::Hello>& hellos, const std::set<int>& own,
                         const std::filesystem::path& proc) {
  SharedCores shared;
  std::set<int> ours;
  for (const service::Hello& hello : hellos)
    if (hello.loads_in_background && !hello.elsewhere) ours.merge(cpus_of(hello.cpus));
  if (ours.empty()) return shared;
  std::error_code error;
  for (std::filesystem::directory_iterator at(proc, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    int process = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), process).ptr != name.data() + name.size()) continue;
    if (own.contains(process) || !is_rank(content_of(at->path() / "cmdline"))) continue;
    const std::set<int> theirs = cores_of(at->path());
    std::set<int> both;
    std::set_intersection(ours.begin(), ours.end(), theirs.begin(), theirs.end(), std::inserter(both, both.end()));
    if (both.empty()) continue;
    shared.processes.insert(process);
    shared.cores.merge(both);
  }
  return shared;
}

std::string sharing_text(const SharedCores& shared) {
  if (shared.processes.empty()) return "";
  return fmt::format(
      "ranks of other services may use {} of the ranks' cores (process{} {}): both are slower while both work. Give each "
      "service cores of its own, as with taskset -c 0-7 shardmat serve",
      shared.cores.size(), shared.processes.size() == 1 ? "" : "es", fmt::join(shared.processes, ", "));
}

}  // namespace shardmat::serve
