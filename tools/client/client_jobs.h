// The commands of `shardmat client` for jobs: solve, jobs, cancel.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/client/client_service.h"

namespace shardmat::tools {

/// Eigenvalues of a job as the service describes it, a line each, and what is known of their number.
std::string text_of_pairs(const nlohmann::ordered_json& job);
/// The exit code of a job that has ended well: not 0, with a message, if eigenvalues are missing among those found.
int code_of_pairs(const nlohmann::ordered_json& job);

std::vector<ClientCommand> add_client_jobs(const CommandLine& client);

}  // namespace shardmat::tools
