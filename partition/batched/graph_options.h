// What is commonly done to the adjacency matrices of graphs before they are multiplied, done as they are read.
#pragma once

#include <memory>

#include "partition/batched/batch_source.h"

namespace shardmat {

struct GraphOptions {
  /// A 1 on the diagonal wherever no entry is stored; entries that are there keep their values.
  bool self_loops = false;
  /// D^-1/2 Â D^-1/2, where Â = A + I, also where A has a diagonal entry (it becomes larger by 1), and D has the row sums of
  /// Â on its diagonal, as in graph convolutional networks (Kipf, Welling: Semi-Supervised Classification with Graph
  /// Convolutional Networks, ICLR 2017, eq. 2). It adds the loops itself, so self_loops must not be set with it.
  bool gcn_normalise = false;
};

/// The source with the options applied; the source itself if there are none. Reads the whole batch once, to count the
/// entries that are added. Throws Error(usage) if both options are set; Error(input) naming the first matrix that is not
/// square, here; and, on reading, the row of Â whose sum is not finite and above 0, by which it cannot be normalised.
std::shared_ptr<const BatchSource> transformed(std::shared_ptr<const BatchSource> source, const GraphOptions& options);

}  // namespace shardmat
