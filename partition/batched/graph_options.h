// What is commonly done to the adjacency matrices of graphs before they are multiplied, done as they are read.
#pragma once

#include <memory>

#include "partition/batched/batch_source.h"

namespace shardmat {

struct GraphOptions {
  /// A 1 on the diagonal wherever no entry is stored: A + I of a graph without loops.
  bool self_loops = false;
  /// D^-1/2 Â D^-1/2, where Â has the self loops (always added) and D its row sums on the diagonal, as in graph
  /// convolutional networks (Kipf, Welling: Semi-Supervised Classification with Graph Convolutional Networks, 2017, eq. 2).
  bool gcn_normalise = false;
};

/// The source with the options applied; the source itself if there are none. Reads the whole batch once, to count the
/// entries that are added. Throws Error(input) naming the first matrix that is not square, here; and, on reading, the row
/// whose sum is not above 0, by which it cannot be normalised.
std::shared_ptr<const BatchSource> transformed(std::shared_ptr<const BatchSource> source, const GraphOptions& options);

}  // namespace shardmat
