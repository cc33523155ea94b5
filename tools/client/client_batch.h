// `shardmat client batch`: a batch of many small matrices is sent to the service with its x.
#pragma once

#include <vector>

#include "tools/client/client_service.h"

namespace shardmat::tools {

std::vector<ClientCommand> add_client_batch(const CommandLine& client);

}  // namespace shardmat::tools
