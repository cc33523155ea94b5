#include "tools/cli/node_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat::tools {

Option add_node_options(const CommandLine& app, NodeFiles& files) {
  app.in(Topic::input)
      .add_option(
          "--coordinates", files.coordinates,
          "where the nodes lie, for multigrid: a line of 3 numbers for each node (2 in the plane; 12 where the unknowns of "
          "a "
          "node are along axes of its own, or shells have two rotations: then its three axes follow), in a file that --b of "
          "solve takes (dataset /coordinates); or the input or result file of the program that "
          "made the matrix: CalculiX and Abaqus (.inp, .frd), Gmsh (.msh). Generators and shard files have their own")
      ->type_name("FILE")
      ->common();
  return app.in(Topic::input)
      .add_option(
          "--mid-edge-nodes", files.mid_edges,
          "the nodes of quadratic elements that lie in the middle of an edge, for --preconditioner multigrid: a line "
          "of 3 numbers for each of them, the node and the ends of its edge, as they lie in --coordinates, from 0 on "
          "(dataset /mid_edges). Meshes, generators and shard files have their own")
      ->type_name("FILE");
}

std::string vectors_file(const std::string& near_null_space) {
  constexpr std::string_view kVectorsOf = "file:";
  if (!near_null_space.starts_with(kVectorsOf)) return {};
  if (near_null_space.size() == kVectorsOf.size())
    throw Error(ErrorKind::usage, "file: is followed by the name of a file, as file:modes.npy", "near_null_space");
  return near_null_space.substr(kVectorsOf.size());
}

NodeCounts counts_of(const NodeFacts& nodes) {
  return {nodes.placed_nodes(), std::ssize(nodes.mid_edges()), nodes.near_null_count()};
}

std::string nodes_text(const NodeCounts& counts) {
  std::vector<std::string> parts;
  if (counts.placed > 0) parts.push_back("coordinates of " + human_count(counts.placed, "node"));
  if (counts.mid_edges > 0) parts.push_back(human_count(counts.mid_edges, "mid-edge node"));
  if (counts.near_null_vectors > 0) parts.push_back(human_count(counts.near_null_vectors, "near-null vector"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace shardmat::tools
