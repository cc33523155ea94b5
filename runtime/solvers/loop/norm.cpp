#include "runtime/solvers/loop/norm.h"

#include <array>

#include "runtime/solvers/loop/named.h"

namespace shardmat {
namespace {

constexpr std::array<std::string_view, 3> kNormNames{"unpreconditioned", "preconditioned", "natural"};

}  // namespace

std::string_view name(ResidualNorm norm) { return kNormNames[static_cast<std::size_t>(norm)]; }

ResidualNorm parse_residual_norm(std::string_view text) {
  for (std::size_t i = 0; i < kNormNames.size(); ++i)
    if (kNormNames[i] == text) return static_cast<ResidualNorm>(i);
  refuse_name("norm of the residual", text, {kNormNames.begin(), kNormNames.end()}, "residual_norm");
}

}  // namespace shardmat
