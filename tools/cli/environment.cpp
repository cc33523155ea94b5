#include "tools/cli/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat::tools {
namespace {

struct Variable {
  const char* name;
  const char* help;
};
constexpr Variable kVariables[] = {
    {"SHARDMAT_CACHE_DIR",
     "folder for measured choices of kernels (default $XDG_CACHE_HOME/shardmat, else ~/.cache/shardmat)"},
    {"SHARDMAT_H5CHECK", "the helper program that looks into HDF5 files (default: shardmat-h5check as built or installed)"},
    {"SHARDMAT_HDF5_LINKS", "follow: read data that an HDF5 file links to in other files (default: refuse)"},
    {"SHARDMAT_ISA",
     "instructions of host kernels: baseline, avx2 or avx512 (default: the highest that all ranks' CPUs have)"},
    {"SHARDMAT_REMOTE", "service that solve and multiply let do the work, as --remote (default: none)"},
    {"SHARDMAT_REMOTE_CA", "PEM file with the certificates to trust for it, as --remote-ca"},
    {"SHARDMAT_REMOTE_TOKEN_FILE", "file with the token for it, as --remote-token-file"},
    {"SHARDMAT_PROGRESS", "progress bars on standard error: auto, on or off (default auto: if it is a terminal)"},
};

}  // namespace

std::string environment_help() {
  std::string text = "Environment:\n";
  for (const Variable& v : kVariables) text += fmt::format("  {:<26} {}\n", v.name, v.help);
  text += "  OMP_NUM_THREADS            host threads of a rank (default: this rank's share of the cores)\n";
  return text;
}

void check_environment() {
  std::vector<std::string> known;
  for (const Variable& v : kVariables) known.emplace_back(v.name);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=')));
    if (name.rfind("SHARDMAT_", 0) != 0 || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest(name, known);
    throw Error(ErrorKind::usage,
                fmt::format("the environment variable {} does not exist{}; there are {}", name,
                            near.empty() ? "" : fmt::format(" (did you mean {}?)", near), join_choices(known)));
  }
}

std::string environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

void require_single_process(const char* command) {
  if (launch().size > 1)
    throw Error(ErrorKind::usage, fmt::format("shardmat {} is one process with threads; start it without mpirun", command));
}

}  // namespace shardmat::tools
