// What a list of nodes in the middle of edges must fulfil.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "partition/source/node_facts.h"

namespace shardmat {

/// Sorts the ends of each edge, and the list by the first node. Throws Error(input) for a node that is none of [0, nodes),
/// that comes twice, or that is the end of an edge and in the middle of one; place(i) names entry i of the list.
std::vector<MidEdge> checked_mid_edges(std::vector<MidEdge> list, std::int64_t nodes,
                                       const std::function<std::string(std::int64_t)>& place);

}  // namespace shardmat
