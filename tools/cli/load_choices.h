// Options of commands that put a matrix on the ranks and multiply it: kernels, exchange, parts.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/matrix/matrix_options.h"
#include "tools/cli/options.h"
#include "tools/cli/run_owners.h"

namespace shardmat::tools {

/// What the options give. finish_load_choices() turns the words into fields of `load`.
struct LoadChoices {
  LoadOptions load;
  std::string type = "f64", sort = "auto", storage = "full";
  bool no_graph = false, overlap = false, no_overlap = false, no_measure = false, no_cache = false;
  double timeout = 60;
  std::int64_t rhs = 1;
  RankSharing sharing;
};

/// --kernel, --policy, --measure, … --no-cache.
void add_kernel_options(const CommandLine& app, LoadChoices& choices);
/// --exchange, --method, --sort, … --timeout, --feeders, --owners. `partition_option`: the name of --method, where that
/// means another method.
void add_rank_options(const CommandLine& app, LoadChoices& choices, const std::string& partition_option = "--method");
/// --node-block-size
void add_node_option(const CommandLine& app, std::int64_t& node_block_size);
/// Throws Error(usage) for options that exclude each other.
void finish_load_choices(LoadChoices& choices);

}  // namespace shardmat::tools
