// Which program this is, and with what it was built.
#pragma once

#include <string>

namespace shardmat::tools {

/// "0.2.0".
std::string version_number();
/// As git describes it; empty if the program was not built in a git checkout.
std::string commit();
/// "0.2.0", followed by " (COMMIT)" if it was built in a git checkout.
std::string version();

/// For --version: the version, then a line each for build type, compiler, instruction sets of the host kernels and
/// libraries.
std::string version_text();
/// The same for --version --json, as tools/schemas/version.schema.json describes it.
std::string version_json();

}  // namespace shardmat::tools
