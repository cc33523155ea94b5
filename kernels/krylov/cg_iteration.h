// What an iteration of conjugate gradients does behind its product, in one launch on a GPU: p·q, the residual with its sums,
// x and the direction. All thread blocks run at the same time and sum over each other (kernels/cuda/peer_sums.h), on all
// ranks at once, so that no sum waits for the end of a kernel. The first entries of the vectors are loaded while the blocks
// wait.
#pragma once

#include "kernels/base/peer_board.h"
#include "kernels/krylov/cg_steps.h"

namespace shardmat::krylov {

/// Sums of a round at most.
constexpr int kCgSums = 2;

template <class T, Scaling kScaling>
struct CgIteration {
  static_assert(kScaling != Scaling::separate);
  CgVectors<T, kScaling> v;  ///< of one column
  std::int64_t rows;
  const double* parts;  ///< of p·q, that the product left; null: p·q is summed from the vectors
  std::int64_t count;   ///< of parts
  PeerBoard board;      ///< of kCgSums values for each thread block
  int blocks;           ///< the same on all ranks; not more than run at the same time
};

/// Thread blocks that run at the same time; 0: the device cannot launch such a kernel, or is the host.
int cg_blocks(Device device);

/// In stream order. Scalars and vectors are afterwards as after CgResidual and CgDirection; the order of the sums depends on
/// the number of blocks, too. A lost rank ends the kernel.
template <class T, Scaling kScaling>
void run_cg_iteration(const CgIteration<T, kScaling>& iteration, Stream& stream);

}  // namespace shardmat::krylov

#define SHARDMAT_CG_ITERATIONS(MAKE) \
  MAKE(float, Scaling::none)         \
  MAKE(float, Scaling::diagonal)     \
  MAKE(double, Scaling::none)        \
  MAKE(double, Scaling::diagonal)
