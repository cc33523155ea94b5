// Ranks of other services on this machine that may use the same cores, as /proc tells. It hides those of other containers.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "runtime/service/wire/command.h"

namespace shardmat::serve {

struct SharedCores {
  std::set<int> cores;      ///< of ours
  std::set<int> processes;  ///< ranks of other services that may use them
  bool operator==(const SharedCores&) const = default;
};

/// `own`: the processes of these ranks. Nothing is shared by ranks on GPUs, which need no more than a core each.
SharedCores shared_cores(const std::vector<service::Hello>& hellos, const std::set<int>& own,
                         const std::filesystem::path& proc = "/proc");

/// For the log; empty if nothing is shared.
std::string sharing_text(const SharedCores& shared);

}  // namespace shardmat::serve
