// Which vertices a random walk restarts at, as users write it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace shardmat {

struct Seeds {
  std::vector<std::int64_t> vertices;  ///< one column each; empty: no seeds, or a file of weights
  std::string weights;                 ///< a file of vectors; empty: none
};

/// `text`: empty; a list "3,17,42" of vertices (from 0); a file of vectors (.npy, .h5, .mtx), whose columns are restart
/// distributions; or any other file, which lists vertices apart by spaces, commas or line ends, "#" beginning a comment.
/// Rank 0 reads a list. Collective; the same error on all ranks: Error(usage) for a text that is no list, Error(input) for a
/// file, with the line.
Seeds read_seeds(const std::string& text, Communicator& ranks);

/// Throws Error(usage or input) unless all vertices are in [0, `count`).
void require_vertices(const Seeds& seeds, const std::string& text, const std::string& graph, std::int64_t count);

}  // namespace shardmat
