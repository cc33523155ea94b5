// A command on the ranks that own a device, when there are more ranks than GPUs.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"
#include "comm/shared_gpu/rank_groups.h"
#include "tools/cli/options.h"

namespace shardmat::tools {

/// What the options say of ranks without a device of their own.
struct RankSharing {
  std::string feeders = "auto";
  int owners = 0;
};

/// --feeders, --owners.
void add_sharing_options(const CommandLine& app, RankSharing& sharing);

/// As run_ranks(). Where there are more ranks than GPUs, or --owners asks for it, `work` runs on the owners alone, with
/// their communicator; the other ranks sleep until it is done, and end with the same exit code.
int run_owners(const CommandLine& command, double timeout_seconds, const RankSharing& sharing, const std::string& backend,
               const std::function<int(Communicator&)>& work);

}  // namespace shardmat::tools
