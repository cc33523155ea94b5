// The commands of `shardmat client` for vectors that stay on the ranks: vectors, make-vector, put-vector, get-vector,
// delete-vector.
#pragma once

#include <vector>

#include "tools/client/client_service.h"

namespace shardmat::tools {

std::vector<ClientCommand> add_client_vectors(const CommandLine& client);

}  // namespace shardmat::tools
