// The commands of `shardmat client` for jobs: solve, jobs, cancel.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/client/client_service.h"

namespace shardmat::tools {

/// Eigenvalues of a job as the service describes it, a line each, and what is known of their number.
std::string text_of_pairs(const nlohmann::ordered_json& job);

std::vector<ClientCommand> add_client_jobs(const CommandLine& client);

}  // namespace shardmat::tools
