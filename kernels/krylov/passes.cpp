#include "kernels/krylov/passes.h"

#include "kernels/base/zeros.h"

namespace shardmat::krylov {

Passes::Passes(Device device, int columns) : columns_(columns) {
  const std::int64_t chunks = (columns + kColumnsAtOnce - 1) / kColumnsAtOnce,
                     bytes = (std::int64_t{kPartialSums} * columns + chunks) * static_cast<std::int64_t>(sizeof(double));
  require_memory(device, bytes, "partial sums of dot products");
  partial_ = zeros(device, static_cast<std::size_t>(bytes));
}

}  // namespace shardmat::krylov
