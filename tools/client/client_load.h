// The commands of `shardmat client` that load a matrix: load and load-arrays. And what they and others say of one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/client/client_service.h"

namespace shardmat::tools {

std::vector<ClientCommand> add_client_load(const CommandLine& client);

/// A line about a matrix.
std::string text_of_matrix(const nlohmann::ordered_json& matrix);
/// Tells what the service did, and could not write down.
void warn_unsaved(const nlohmann::ordered_json& answer);

}  // namespace shardmat::tools
