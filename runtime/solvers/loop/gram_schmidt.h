// How GMRES makes its basis orthogonal.
#pragma once

namespace shardmat {

enum class GramSchmidt {
  classical,  ///< twice (CGS2): two sums over the ranks a step
  modified,   ///< once (MGS): as many sums as the basis has vectors
};

}  // namespace shardmat
