// The commands of `shardmat client` for the files of the service: upload, library.
#pragma once

#include <vector>

#include "tools/client/client_service.h"

namespace shardmat::tools {

std::vector<ClientCommand> add_client_library(const CommandLine& client);

}  // namespace shardmat::tools
