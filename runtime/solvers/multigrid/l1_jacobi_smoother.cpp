// Block Jacobi with D + L in place of the blocks D on the diagonal; L has on its diagonal the sums of the magnitudes of each
// row outside its block (A. Baker, R. Falgout, T. Kolev, U. Yang, Multigrid smoothers for ultraparallel computing, SIAM J.
// Sci. Comput. 33, 2011). The sums are over all couplings, not over those with other ranks alone: then D + L − A is
// diagonally dominant. The iteration converges for each symmetric positive definite matrix, and for each M-matrix; it needs
// no estimate, and does not depend on the number of ranks.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/base/parallel.h"
#include "runtime/solvers/multigrid/block_steps.h"
#include "runtime/solvers/multigrid/blocks.h"

namespace shardmat::multigrid {
namespace {

class L1JacobiSmoother final : public BlockSteps {
 public:
  explicit L1JacobiSmoother(const SmootherInputs& inputs) : BlockSteps(inputs) { steps_.assign(at(in_.degree), {1, 0}); }

  void take(const NodeRows& a, const HostVector<double>&, double, Stream& stream) override {
    const int s = a.row_size;
    HostVector<double> inverse(at(a.count() * a.block_entries()));
    parallel_ranges(a.count(), a.grain(), [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> block(at(a.block_entries()));
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t diagonal = a.find(i, static_cast<std::int32_t>(i));
        if (diagonal < 0) std::fill(block.begin(), block.end(), 0.0);
        else std::copy_n(a.block(diagonal), a.block_entries(), block.begin());
        for (int r = 0; r < s; ++r) {
          double sum = 0;
          for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k)
            for (int c = 0; k != diagonal && c < s; ++c) sum += std::abs(a.block(k)[r * s + c]);
          block[at(r * s + r)] += std::copysign(sum, block[at(r * s + r)]);
        }
        invert_symmetric(block.data(), inverse.data() + i * a.block_entries(), s);
      }
    });
    put(inverse, stream);
  }
};

}  // namespace

std::unique_ptr<Smoother> make_l1_jacobi_smoother(const SmootherInputs& inputs) {
  return std::make_unique<L1JacobiSmoother>(inputs);
}

}  // namespace shardmat::multigrid
