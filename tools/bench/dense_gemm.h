// Dense products as cuBLAS makes them.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/device.h"

namespace shardmat::tools {

/// Z = X W in f32, everything row-major without gaps: X rows × in, W in × out.
class DenseGemm {
 public:
  virtual ~DenseGemm() = default;
  virtual void multiply(const void* x, const void* w, void* z, Stream& stream) = 0;
};

/// `tf32`: factors may be rounded to TF32. Null in a build without cuBLAS.
std::unique_ptr<DenseGemm> make_dense_gemm(std::int64_t rows, std::int64_t in, std::int64_t out, bool tf32, Device device);

}  // namespace shardmat::tools
