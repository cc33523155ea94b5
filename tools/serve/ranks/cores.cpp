#include "tools/serve/ranks/cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace shardmat::serve {

std::set<int> cpus_of(std::string_view list) {
  constexpr int kMost = 1 << 16;
  std::set<int> cpus;
  const char *at = list.data(), *const end = at + list.size();
  while (at < end) {
    int first = 0;
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc() || first < 0 || first >= kMost) break;
    int last = first;
    if (read.ptr < end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc() || last < first || last >= kMost) break;
    for (int cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
    if (read.ptr >= end || *read.ptr != ',') break;
    at = read.ptr + 1;
  }
  return cpus;
}

std::string place_text(const service::Hello& hello) {
  const std::size_t cores = cpus_of(hello.cpus).size();
  return fmt::format("rank {} of {} on {}: {}, {} thread{} on {} core{} ({})", hello.rank, hello.ranks, hello.host,
                     hello.device, hello.threads, hello.threads == 1 ? "" : "s", cores, cores == 1 ? "" : "s", hello.cpus);
}

std::string core_warning(const std::vector<service::Hello>& hellos, int free) {
  const bool on_gpus = std::none_of(hellos.begin(), hellos.end(), [](const auto& one) { return one.loads_in_background; });
  if (hellos.empty() || on_gpus) return "";
  std::set<int> together;
  for (const service::Hello& hello : hellos)
    if (!hello.elsewhere) together.merge(cpus_of(hello.cpus));
  const int cores = static_cast<int>(together.size());
  if (cores >= free) return "";
  return fmt::format(
      "the launcher has bound the ranks to {} of {} free cores; ranks of other services may be bound to the same "
      "ones. Leave ranks unbound, as with --launcher 'mpirun --bind-to none -n {}'",
      cores, free, hellos.size());
}

}  // namespace shardmat::serve
