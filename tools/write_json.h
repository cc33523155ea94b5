// A report as JSON, to a file or to standard output.
#pragma once

#include <string>

namespace shardmat::tools {

/// Writes `json` to the file `path`, which appears when it is complete; "-" is standard output.
void write_json(const std::string& path, const std::string& json);

}  // namespace shardmat::tools
