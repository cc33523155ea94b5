// The options of files that say where the nodes of a matrix lie, and more that multigrid wants to know.
#pragma once

#include <string>

#include "partition/nodes/given_nodes.h"
#include "tools/cli/options.h"

namespace shardmat::tools {

/// Adds --coordinates and --mid-edge-nodes; returns the second, which the short help leaves out.
Option add_node_options(const CommandLine& app, NodeFiles& files);

/// The FILE of "file:FILE", a value of --near-null-space; empty of other values. Throws Error(usage) if it is missing.
std::string vectors_file(const std::string& near_null_space);

/// "coordinates of 1,000 nodes, 300 mid-edge nodes, 6 near-null vectors"; empty if nothing is known.
struct NodeCounts {
  std::int64_t placed = 0, mid_edges = 0, near_null_vectors = 0;
};
NodeCounts counts_of(const NodeFacts& nodes);
std::string nodes_text(const NodeCounts& counts);

}  // namespace shardmat::tools
