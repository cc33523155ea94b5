// The norm of the residual that decides whether a solver is done.
#pragma once

#include <string_view>

#include "kernels/krylov/residual.h"

namespace shardmat {

using ResidualNorm = krylov::Norm;

std::string_view name(ResidualNorm norm);
/// Throws Error(usage) naming the choices for any other text.
ResidualNorm parse_residual_norm(std::string_view text);

}  // namespace shardmat
