// A report, as JSON or CSV, to a file or to standard output.
#pragma once

#include <string>

namespace shardmat::tools {

/// Writes `text` to the file `path`, which appears when it is complete; "-" is standard output.
void write_text(const std::string& path, const std::string& text);

}  // namespace shardmat::tools
