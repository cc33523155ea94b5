// The command of `shardmat client` that waits: until the service is ready, a matrix is loaded, or a job has ended.
#pragma once

#include <vector>

#include "tools/client/client_service.h"

namespace shardmat::tools {

std::vector<ClientCommand> add_client_wait(const CommandLine& client);

}  // namespace shardmat::tools
