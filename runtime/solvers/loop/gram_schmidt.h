// How GMRES makes its basis orthogonal.
#pragma once

#include <string_view>

namespace shardmat {

enum class GramSchmidt {
  classical,  ///< twice (CGS2): two sums over the ranks a step
  modified,   ///< once (MGS): as many sums as the basis has vectors
};

/// "classical", "modified".
std::string_view name(GramSchmidt choice);
/// Throws Error(usage) naming the choices for any other text.
GramSchmidt parse_gram_schmidt(std::string_view text);

}  // namespace shardmat
