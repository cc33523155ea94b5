// What generate and partition share: the options of a shard file and its writing, with the quality table at the end.
#pragma once

#include <string>
#include <vector>

#include "partition/nodes/given_nodes.h"
#include "partition/shard/shard_file.h"
#include "tools/cli/options.h"
#include "tools/cli/peak_memory.h"

namespace shardmat::tools {

struct FileOptions {
  std::string output;
  std::vector<int> parts;
  std::string method;  ///< empty: nnz, or auto where orders are chosen
  std::string sort = "none", reorder = "none";
  std::int64_t node_block_size = 0;  ///< unknowns of a node; 0: found in the pattern
  NodeFiles nodes;                   ///< where nodes lie, and more; empty: what the source knows
  std::string model;                 ///< by which orders are chosen
  bool compare = false;              ///< nothing is written
  bool force = false;                ///< replaces a file of another kind
};

/// Adds the output, --parts, --method, --node-block-size, --sort, --reorder, --compare and --model.
void add_file_options(const CommandLine& app, FileOptions& options);

/// What can be told before reading for minutes: throws Error(usage) for options that exclude each other, Error(resources)
/// unless the file can be written.
void check_file_options(const FileOptions& options);

/// Chooses what is left open, writes and prints what was written and the memory it took since `peak` began. `original`: the
/// source that knows the nodes, if it is another one.
void write_file(const RowSource& source, const FileOptions& options, bool allow_nonfinite, const PeakMemory& peak,
                const RowSource* original = nullptr);

}  // namespace shardmat::tools
