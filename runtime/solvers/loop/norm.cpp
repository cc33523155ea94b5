#include "runtime/solvers/loop/norm.h"

#include <array>

#include "runtime/solvers/loop/named.h"

namespace shardmat {
namespace {

constexpr std::array<std::string_view, 3> kNames{"unpreconditioned", "preconditioned", "natural"};

}  // namespace

std::string_view name(ResidualNorm norm) { return kNames[static_cast<std::size_t>(norm)]; }

ResidualNorm parse_residual_norm(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<ResidualNorm>(i);
  refuse_name("norm of the residual", text, {kNames.begin(), kNames.end()}, "residual_norm");
}

}  // namespace shardmat
