// Common transformations of the adjacency matrices of graphs, applied when the matrices are read.
#pragma once

#include <memory>

#include "partition/batched/batch_source.h"

namespace shardmat {

struct GraphOptions {
  /// Adds a 1 on the diagonal wherever no entry is stored. Stored entries keep their values.
  bool self_loops = false;
  /// D^-1/2 Â D^-1/2, where Â = A + I, also where A has a diagonal entry (it becomes larger by 1), and D has the row sums of
  /// Â on its diagonal, as in graph convolutional networks (Kipf, Welling: Semi-Supervised Classification with Graph
  /// Convolutional Networks, ICLR 2017, eq. 2). It adds the loops itself, so self_loops must not be set with it.
  bool gcn_normalise = false;
};

/// The source with the options applied; without options, the source itself. Reads the whole batch once, to count the added
/// entries. Throws Error(usage) if both options are set, and Error(input) for the first matrix that is not square. Reading
/// throws Error(input) for a row of Â that cannot be normalised, because its sum is not finite or not above 0.
std::shared_ptr<const BatchSource> transformed(std::shared_ptr<const BatchSource> source, const GraphOptions& options);

}  // namespace shardmat
