// The commands of `shardmat client` for vectors that stay on the ranks: vectors, make-vector, put-vector, get-vector,
// delete-vector.
#pragma once

#include <functional>
#include <vector>

#include "tools/cli/command.h"

namespace shardmat::tools {

struct ClientCommand {
  CommandLine app;
  std::function<int()> run;
};

std::vector<ClientCommand> add_client_vectors(const CommandLine& client);

}  // namespace shardmat::tools
