// The Chebyshev iteration with block Jacobi, for symmetric matrices (M. Adams, M. Brezina, J. Hu, R. Tuminaro, Parallel
// multigrid smoothing: polynomial versus Gauss-Seidel, J. Comput. Phys. 188, 2003).
#include <iterator>

#include "runtime/solvers/multigrid/block_steps.h"

namespace shardmat::multigrid {
namespace {

/// The smoother works on [lower, 1] of the spectrum: one step; more, on nodes of one unknown and of several. Measured on
/// grids and meshes: a grid of Poisson's equation takes 9 iterations with 0.1, and 8 with 0.15.
constexpr double kLowerOfOne = 0.25, kLowerOfSingles = 0.15, kLower = 0.1;

class ChebyshevSmoother final : public BlockSteps {
 public:
  using BlockSteps::BlockSteps;

  void take(const NodeRows&, const HostVector<double>& inverse, double radius, Stream& stream) override {
    put(inverse, stream), take_radius(radius);
  }
  void take(const Buffer& inverse, double radius, Stream& stream) override { put(inverse, stream), take_radius(radius); }

 private:
  void take_radius(double radius) {
    const double lower = in_.degree == 1 ? kLowerOfOne : in_.size == 1 ? kLowerOfSingles : kLower;
    const double centre = (1 + lower) * radius / 2, half = (1 - lower) * radius / 2, sigma = centre / half;
    steps_.assign(1, {1 / centre, 0});
    for (double ratio = 1 / sigma; std::ssize(steps_) < in_.degree;) {
      const double next = 1 / (2 * sigma - ratio);
      steps_.push_back({2 * next / half, next * ratio});
      ratio = next;
    }
  }
};

}  // namespace

std::unique_ptr<Smoother> make_chebyshev_smoother(const SmootherInputs& inputs) {
  return std::make_unique<ChebyshevSmoother>(inputs);
}

}  // namespace shardmat::multigrid
