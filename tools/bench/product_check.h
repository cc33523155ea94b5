// Whether a product is right: each row against a sequential f64 sum, computed once per matrix and type.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/device.h"
#include "kernels/base/types.h"
#include "kernels/matrix/csr.h"

namespace shardmat::tools {

class ProductCheck {
 public:
  /// x holds values of `type`. Values are rounded to `type` first, as the kernel sees them.
  ProductCheck(const CsrView& matrix, ValueType type, std::span<const double> x);

  struct Outcome {
    std::int64_t wrong_rows = 0;
    std::int64_t worst_row = -1;  ///< the first of the wrong rows with the largest error; -1 if none is wrong
    double error = 0, bound = 0;  ///< there: |y - ŷ|, and the 2·u·(nnz + 2)·Σ|a||x| allowed
  };
  /// y is on the stream's device.
  Outcome compare(const void* y, Stream& stream) const;

 private:
  ValueType type_;
  HostVector<double> expected_, bound_;
};

}  // namespace shardmat::tools
