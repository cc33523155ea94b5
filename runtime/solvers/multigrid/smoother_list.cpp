#include <array>

#include "kernels/base/error.h"
#include "runtime/solvers/loop/named.h"
#include "runtime/solvers/multigrid/smoother.h"

namespace shardmat::multigrid {
namespace {

constexpr auto kSmoothers = std::to_array<SmootherEntry>({
    {.name = "chebyshev",
     .help = "Chebyshev iteration with block Jacobi, for symmetric matrices",
     .needs_radius = true,
     .any_matrix = false,
     .takes_blocks = true,
     .make = make_chebyshev_smoother},
    {.name = "l1_jacobi",
     .help = "block Jacobi with the magnitudes of all couplings added to the diagonal, for any matrix",
     .needs_radius = false,
     .any_matrix = true,
     .takes_blocks = false,
     .make = make_l1_jacobi_smoother},
    {.name = "ilu",
     .help = "incomplete factors L·U of each rank's rows, for any matrix",
     .needs_radius = false,
     .any_matrix = true,
     .needs_damping = true,
     .make = make_ilu_smoother},
    {.name = "ic",
     .help = "incomplete factors L·D·Lᵀ of each rank's rows, for symmetric matrices",
     .needs_radius = false,
     .any_matrix = false,
     .needs_damping = true,
     .make = make_ic_smoother},
});

}  // namespace

void Smoother::take(const Buffer&, double, Stream&) {
  throw Error(ErrorKind::internal, "this smoother needs the rows of its level");
}

std::span<const SmootherEntry> smoothers() { return kSmoothers; }

const SmootherEntry& find_smoother(std::string_view name) { return find_named(kSmoothers, "smoother", name, "smoother"); }

}  // namespace shardmat::multigrid
