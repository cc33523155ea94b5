// A report as JSON, with what made it.
#pragma once

#include <string>

namespace shardmat::tools {

/// Writes the JSON text of a report to the file `path`, or to standard output for "-", with an object "run" in it, or in
/// each object of its list: version, commit, date, host, command line, launcher, threads and cores of this process.
void write_report(const std::string& path, const std::string& json);

}  // namespace shardmat::tools
