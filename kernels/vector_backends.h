// The two implementations behind vector.h. Internal to kernels/.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat {

constexpr int kDotBlocks = 1024;  ///< partial sums of a dot product, whatever its length: the order stays fixed

struct VectorBackend {
  /// `partial`: 2·kDotBlocks sums and 8 bytes that are 0 before and after.
  void (*dots)(ValueType type, std::int64_t n, const void* x, const void* y, double* partial, double* result,
               Stream& stream);
  void (*normalise)(ValueType type, std::int64_t n, const void* y, const double* norm_squared, void* x, Stream& stream);
  void (*gather)(std::size_t entry_bytes, std::int64_t n, const std::int32_t* places, const void* from, void* to,
                 Stream& stream);
  void (*copy_rows)(std::size_t row_bytes, std::int64_t n, const void* from, std::size_t from_apart, void* to,
                    std::size_t to_apart, Stream& stream);
};

extern const VectorBackend host_vector_backend;
extern const VectorBackend cuda_vector_backend;

}  // namespace shardmat
