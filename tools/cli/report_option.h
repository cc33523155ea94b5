// Options that mean the same for every command that has them: --json, --backend, --seed.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cli/options.h"

namespace shardmat::tools {

/// Adds --json [FILE]. Afterwards `json` is empty (not given), "-" (standard output; no name was given, or this one) or the
/// file's name. With "-" a command prints its JSON in place of its text. `what` is added to the help, as ", anew after every
/// case". A name that can only be a matrix is refused, as that is what "--json a.h5" would overwrite.
Option add_json_option(const CommandLine& app, std::string& json, const std::string& what = "");

Option add_backend_option(const CommandLine& app, std::string& backend,
                          const std::string& help = "where to run; auto takes the GPUs if there is one for every rank");
Option add_seed_option(const CommandLine& app, std::uint64_t& seed, const std::string& help = "seed of random vectors");

}  // namespace shardmat::tools
