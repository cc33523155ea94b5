// The commands of `shardmat client` for jobs: solve, jobs, cancel.
#pragma once

#include <vector>

#include "tools/client/client_service.h"

namespace shardmat::tools {

std::vector<ClientCommand> add_client_jobs(const CommandLine& client);

}  // namespace shardmat::tools
