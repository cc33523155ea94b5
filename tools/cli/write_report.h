// A report as JSON, with what made it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shardmat::tools {

/// Writes the JSON text of a report to the file `path`, or to standard output for "-", with an object "run" in it, or in
/// each object of its list: version, commit, date, host, command line, launcher, threads and cores of this process.
/// `findings`: names of what `shardmat doctor` finds; added to "run".
void write_report(const std::string& path, const std::string& json,
                  const std::optional<std::vector<std::string>>& findings = {});

}  // namespace shardmat::tools
