// Which form of conjugate gradients: the classic one, or the one that sums over the ranks once an iteration.
#pragma once

#include <string>
#include <string_view>

namespace shardmat {

struct MethodInputs;

enum class CgVariant {
  automatic,         ///< the faster one, see choose_cg_variant()
  classic,           ///< two sums over the ranks an iteration
  single_reduction,  ///< one sum; its passes read and write a vector more (two with a preconditioner of passes of its own)
};

/// "auto", "classic", "single_reduction".
std::string_view name(CgVariant variant);
/// Throws Error(usage) naming the choices for any other text.
CgVariant parse_cg_variant(std::string_view text);

struct CgChoice {
  CgVariant variant = CgVariant::classic;
  std::string why;
};

/// Thread blocks of the launch that does all that follows the product of an iteration; 0: these inputs need passes.
int cg_blocks_for(const MethodInputs& inputs);

/// The variant for these ranks, rows and columns; `asked` unless it is automatic. One rank: classic. Several: classic if
/// kernels can sum over the ranks in the launch that updates the vectors. Otherwise
/// single_reduction if a sum over the ranks takes longer than reading the further vectors. Both are measured, on the slowest
/// rank, in some milliseconds; `by_rule`: nothing is measured, and the bytes of a vector decide. Overwrites the product's
/// x(). Collective; the same on all ranks.
CgChoice choose_cg_variant(const MethodInputs& inputs, CgVariant asked, bool by_rule);

}  // namespace shardmat
