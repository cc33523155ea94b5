// Conjugate gradients as textbooks write them, one library call for each line: cuSPARSE multiplies, cuBLAS does the rest,
// and each dot product waits for the host. What a user would write first, and what `bench solve` compares with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/base/device.h"
#include "kernels/matrix/csr.h"

namespace shardmat::tools {

class TextbookCg {
 public:
  virtual ~TextbookCg() = default;

  struct Solved {
    double seconds = 0, residual = 0;  ///< residual: over ‖b‖
    std::int64_t iterations = 0;
  };
  /// Solves A·x = 1 from x = 0 until ‖r‖ ≤ rtol·‖b‖, in at most so many iterations.
  virtual Solved solve(double rtol, std::int64_t most) = 0;
};

/// Null if the program was built without cuBLAS, or on the host. `preconditioner`: none, jacobi or block_jacobi with blocks
/// of `block` rows. Throws Error(resources) without memory. The stream outlives it.
std::unique_ptr<TextbookCg> make_textbook_cg(const HostCsr& a, const std::string& preconditioner, int block, Stream& stream);

}  // namespace shardmat::tools
